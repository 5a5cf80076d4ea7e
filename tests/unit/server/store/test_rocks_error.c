/* Texts of RocksDB 7.8, as its Status::ToString gives them. */
#include "server/store/repair/rocks_text.h"
#include "server/store/rocks_error.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void texts_become_statuses(void **state)
{
    static const struct {
        const char *text;
        enum dp_status status;
        const char *says;
    } cases[] = {
        {"Corruption: block checksum mismatch: stored = 1, computed = 2  in d/000009.sst offset 1 size 2",
         DP_CORRUPT, "000009.sst"},
        {"Corruption: Can't access /000009.sst: IO error: No such file or directory", DP_CORRUPT,
         "restore copies of all servers' stores from one time, or a checkpoint (downpour restore "
         "--overwrite), or "
         "move this one away"},
        {"IO error: No space left on device: While appending to file: d/ingest-tmp", DP_FULL, "make room"},
        {"IO error: While appending to file: d/ingest-tmp: Disk quota exceeded", DP_FULL, "make room"},
        {"IO error: While open a file for appending: d/ingest-tmp: Too many open files", DP_FULL,
         "ulimit -n"},
        {"IO error: While open a file for appending: d/ingest-tmp: Too many open files in system", DP_FULL,
         "ulimit -n"},
        {"IO error: While appending to file: d/ingest-tmp: File too large", DP_FULL, "ulimit -f"},
        {"IO error: While lock file: d/LOCK: Resource temporarily unavailable", DP_IN_USE, "another server"},
        {"IO error: lock hold by current process, acquire time 1 acquiring thread 2: d/LOCK: No locks "
         "available",
         DP_IN_USE, "another server"},
        {"Invalid argument: Column families not opened: x", DP_UNSUPPORTED, "move this one away"},
        {"IO error: Input/output error: While fsync: d/ingest-tmp", DP_IO, "While fsync"},
        {"", DP_IO, "write rows"},
        {"IO error: No such file: d/MANIFEST-\x1b[2J\x80\xc2\x9b\n", DP_IO, "d/MANIFEST-?[2J????"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_error err = {0};
        char *text = strdup(cases[i].text);
        assert_int_equal(dp_rocks_error_take(&text, "some/dir", "write rows", &err), cases[i].status);
        assert_null(text);
        assert_int_equal(err.status, cases[i].status);
        assert_non_null(strstr(err.text, "some/dir"));
        assert_non_null(strstr(err.text, cases[i].says));
    }
}

/* RocksDB puts in the system's own words. */
static void the_systems_words_are_those(void **state)
{
    assert_string_equal(strerror(ENOSPC), "No space left on device");
    assert_string_equal(strerror(EDQUOT), "Disk quota exceeded");
    assert_string_equal(strerror(EFBIG), "File too large");
    assert_string_equal(strerror(EMFILE), "Too many open files");
    assert_string_equal(strerror(ENFILE), "Too many open files in system");
}

/* Planted: a directory's name counts. */
static void a_file_that_is_named_is_found(void **state)
{
    static const struct {
        const char *text;
        bool file, table;
    } cases[] = {
        {"store /s: read: Corruption: block checksum mismatch  in /s/000009.sst offset 1", true, true},
        {"store /s: open: Corruption: checksum mismatch in file /s/000012.log", true, false},
        {"store /s: open: Corruption: CURRENT names /s/MANIFEST-000004", true, false},
        {"store /s: open: Corruption: bad entry", false, false},
        {"store /run1.log/day2.sst/s.sst: open: Corruption: bad entry", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_error err = {0};
        (void)dp_fail(&err, DP_CORRUPT, "%s", cases[i].text);
        assert_int_equal(dp_rocks_text_names_file(&err), cases[i].file);
        assert_int_equal(dp_rocks_text_names_table(&err), cases[i].table);
    }
}

#define GONE "No such file or directory"

static void the_last_table_is_found(void **state)
{
    static const struct {
        const char *text;
        uint64_t number; /* 0: none */
    } cases[] = {
        {"Corruption: IO error: " GONE ": While open a file for random read: /s/000012.ldb: " GONE, 12},
        {"Corruption: Can't access /000007.sst: IO error: " GONE ": stat: /s/1.sst/000007.sst", 7},
        {"IO error: " GONE ": /day/3.sst/x/CURRENT", 0},
        {"Corruption: block checksum mismatch in /s/000009.sst", 9},
        {"Corruption: checksum mismatch in /s/MANIFEST-000005", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t number = 0;
        assert_int_equal(dp_rocks_text_table(cases[i].text, &number), cases[i].number > 0);
        assert_true(number == cases[i].number);
    }
}

static void no_text_is_ok(void **state)
{
    struct dp_error err = {0};
    char *text = NULL;
    assert_int_equal(dp_rocks_error_take(&text, "some/dir", "write rows", &err), DP_OK);
    assert_int_equal(err.text[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_statuses),   cmocka_unit_test(a_file_that_is_named_is_found),
        cmocka_unit_test(the_last_table_is_found), cmocka_unit_test(the_systems_words_are_those),
        cmocka_unit_test(no_text_is_ok),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
