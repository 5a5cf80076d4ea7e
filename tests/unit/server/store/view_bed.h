/* View bed: a store and its journal that are looked at; their files read, changed by a bit, and told apart from what they were. */
#ifndef DP_TESTS_UNIT_SERVER_STORE_VIEW_BED_H
#define DP_TESTS_UNIT_SERVER_STORE_VIEW_BED_H

#include "common/model/mix.h"
#include "common/model/row.h"
#include "server/durable/table_mark.h"
#include "server/inspect/inspect_digest.h"
#include "server/inspect/inspect_journal.h"
#include "server/journal/journal.h"
#include "server/store/marks.h"
#include "server/store/store_view.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_up(void **state)
{
    struct form *form = form_new(true);
    form->options.range = (struct dp_range){0, UINT64_MAX};
    form->options.journaled = true;
    *state = form;
    return 0;
}
static int tear_down(void **state)
{
    form_free(*state);
    return 0;
}

static void must(enum dp_status st, const struct dp_error *err)
{
    if (st != DP_OK)
        fail_msg("%s: %s", dp_status_name((int)st), err->text);
}

/* ---- what was seen */

struct seen {
    uint64_t rows;
    struct dp_digest digest;
    uint32_t damages;
    struct dp_error damage[8];
};

static void path_of(char path[600], const char *directory, const char *name)
{
    (void)snprintf(path, 600, "%s/%s", directory, name);
}

static unsigned char *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    unsigned char *bytes = malloc(*size + 1);
    rewind(file);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    (void)fclose(file);
    return bytes;
}

static void flip(const char *path, long at, unsigned bit)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_true(byte != EOF && fputc(byte ^ (1 << bit), file) != EOF);
    assert_int_equal(fclose(file), 0);
}

/* Names, bytes and times of all files and of the directories they lie in, folded. */
static uint64_t print_of(const char *directory)
{
    uint64_t print = 0;
    DIR *list = opendir(directory);
    assert_non_null(list);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        char path[600];
        struct stat found;
        if (strcmp(entry->d_name, "..") == 0)
            continue; /* what else lies beside the store is other people's */
        path_of(path, directory, entry->d_name);
        assert_int_equal(stat(path, &found), 0);
        uint64_t one = (uint64_t)found.st_mtim.tv_nsec * 31 + (uint64_t)found.st_size;
        for (const char *c = entry->d_name; *c; c++)
            one = one * 1099511628211u + (unsigned char)*c;
        if (S_ISREG(found.st_mode)) {
            size_t size;
            unsigned char *bytes = slurp(path, &size);
            for (size_t i = 0; i < size; i++)
                one = one * 1099511628211u + bytes[i];
            free(bytes);
        } else if (entry->d_name[0] != '.')
            one += print_of(path);
        print += dp_mix(one);
    }
    (void)closedir(list);
    return print;
}

#endif
