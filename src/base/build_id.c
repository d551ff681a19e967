#include "base/build_id.h"

#include "base/hash.h"

#include <link.h>
#include <string.h>

enum { BUILD_ID_ALIGN = 4 };

static size_t align(size_t n)
{
    return (n + BUILD_ID_ALIGN - 1) / BUILD_ID_ALIGN * BUILD_ID_ALIGN;
}

/* The notes of one segment (elf(5)): header, name, description, each padded. */
static bool find_in_notes(const char *at, size_t n, char *ret)
{
    ElfW(Nhdr) note;

    while (n >= sizeof(note)) {
        size_t n_name, n_bytes;

        memcpy(&note, at, sizeof(note));
        n_name = align(note.n_namesz);
        n_bytes = align(note.n_descsz);
        if (n_name > n - sizeof(note) || n_bytes > n - sizeof(note) - n_name)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at + sizeof(note), "GNU", 4) == 0 &&
            note.n_descsz < BUILD_ID_SIZE / 2) {
            hash_hex((const unsigned char *)at + sizeof(note) + n_name, note.n_descsz, ret);
            return true;
        }
        at += sizeof(note) + n_name + n_bytes;
        n -= sizeof(note) + n_name + n_bytes;
    }
    return false;
}

/* The first object is the program itself (dl_iterate_phdr(3)). */
static int look_at_program(struct dl_phdr_info *info, size_t size, void *ret)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];

        if (header->p_type == PT_NOTE &&
            find_in_notes((const char *)(info->dlpi_addr + header->p_vaddr), header->p_memsz, ret))
            break;
    }
    return 1;
}

void build_id(char ret[BUILD_ID_SIZE])
{
    ret[0] = '\0';
    dl_iterate_phdr(look_at_program, ret);
}
