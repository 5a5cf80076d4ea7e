/* Gives the rows of a closed store another generation and history, as if a restore had built it. */
#ifndef DP_TESTS_LIB_STORE_HISTORY_H
#define DP_TESTS_LIB_STORE_HISTORY_H

#include "common/base/bytes.h"
#include "server/store/marks_file.h"
#include "tests/lib/test.h"

static inline void store_history_set(const char *directory, uint64_t generation, uint64_t history)
{
    struct dp_error err = {0};
    struct dp_disk disk;
    struct dp_marks_file *file = NULL;
    char number[8], random[8];
    const struct dp_store_mark marks[] = {{"store/generation", number, 16, 8},
                                          {"store/history", random, 13, 8}};
    dp_store_u64le(number, generation);
    dp_store_u64le(random, history);
    assert_int_equal(dp_disk_open(directory, &disk, &err), DP_OK);
    assert_int_equal(dp_marks_file_load(&disk, &file, &err), DP_OK);
    assert_int_equal(dp_marks_file_put(file, marks, 2, &err), DP_OK);
    dp_marks_file_close(&file);
    dp_disk_close(&disk);
}

#endif
