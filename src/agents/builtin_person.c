/* ask_person: a question that waits for a person like an approval. */
#include "agents/builtin_private.h"

#include "agents/approvals.h"
#include "base/limits.h"

struct question_arguments {
    const char *question;
    struct field_strings choices;
};

static const struct field question_fields[] = {
    FIELD_STRING(struct question_arguments, question, "question", FIELD_REQUIRED, .min = 1,
                 .max = LIMIT_QUESTION_CHARS),
    FIELD_STRINGS(struct question_arguments, choices, "choices", .max = LIMIT_QUESTION_CHOICES),
    FIELD_END,
};

static int check_choices(const struct field_strings *choices, struct err *e)
{
    char path[32];

    for (size_t i = 0; i < choices->n; i++) {
        snprintf(path, sizeof(path), "choices[%zu]", i);
        if (!*choices->items[i] || strlen(choices->items[i]) > LIMIT_QUESTION_CHARS)
            return err_add_field(e, path, "must be a text of 1 to %d bytes", LIMIT_QUESTION_CHARS);
    }
    return 0;
}

static int answer(const struct builtin_call *c, const struct approval_answer *given, struct mcp_result *ret,
                  struct err *e)
{
    struct slice words = json_string(given->reply);

    if (given->outcome == APPROVAL_UNANSWERED)
        return err_set(e, -ETIMEDOUT, "NOT_ANSWERED",
                       "Nobody has answered the question. Go on without an answer or end.");
    if (given->outcome == APPROVAL_DENIED)
        return err_set(e, -EPERM, "NOT_ANSWERED", "The person does not want to answer the question.");
    return builtin_answer_text(c->call->arena, words, ret, e);
}

int builtin_person_question(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    struct question_arguments in = { 0 };
    struct approval_answer given = { 0 };
    int r = fields_read(question_fields, c->arguments, &in, c->call->arena, "", e);

    if (r == 0)
        r = check_choices(&in.choices, e);
    if (r == 0 && !c->approvals)
        r = err_set(e, -ENOTSUP, "NOT_SERVING", "Nobody can be asked here.");
    if (r == 0)
        r = approvals_request(c->approvals,
                              &(struct approval_question){
                                  .kind = "question",
                                  .agent = c->agent ? c->agent->name : NULL,
                                  .tool = "ask_person",
                                  .session_id = c->session_id,
                                  .task_uuid = c->task_uuid,
                                  .app_id = c->app_id,
                                  .text = in.question,
                                  .arguments = c->arguments,
                                  .choices =
                                      in.choices.n > 0 ? json_get(c->arguments, "choices") : (struct json_value){ 0 },
                              },
                              c->wait, c->call->arena, &given, e);
    return r < 0 ? r : answer(c, &given, ret, e);
}
