#include "backend/status.h"

static const struct {
    const char *word;
    bool is_claimable, is_leased, is_finished;
} words[] = {
    { STATUS_PENDING, .is_claimable = true },
    { STATUS_CLAIMED, .is_leased = true },
    { STATUS_PROCESSING, .is_leased = true },
    { STATUS_COMPLETED, .is_finished = true },
    { STATUS_FAILED, .is_claimable = true, .is_finished = true },
    { STATUS_CANCELED, .is_finished = true },
};

static bool is_of(size_t i, enum status_class of)
{
    switch (of) {
    case STATUSES_CLAIMABLE:
        return words[i].is_claimable;
    case STATUSES_LEASED:
        return words[i].is_leased;
    case STATUSES_FINISHED:
        return words[i].is_finished;
    case STATUSES_ALL:
        break;
    }
    return true;
}

static bool has_word(const char *status, enum status_class of)
{
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcmp(words[i].word, status) == 0)
            return is_of(i, of);
    return false;
}

bool status_is_claimable(const char *status)
{
    return has_word(status, STATUSES_CLAIMABLE);
}

bool status_is_leased(const char *status)
{
    return has_word(status, STATUSES_LEASED);
}

bool status_is_finished(const char *status)
{
    return has_word(status, STATUSES_FINISHED);
}

const char *status_word(enum status_class of, size_t i)
{
    for (size_t at = 0; at < ARRAY_SIZE(words); at++)
        if (is_of(at, of) && i-- == 0)
            return words[at].word;
    return NULL;
}

void status_add_list(struct buf *out, enum status_class of)
{
    const char *word;

    for (size_t i = 0; (word = status_word(of, i)); i++)
        buf_printf(out, "%s'%s'", i ? ", " : "", word);
}
