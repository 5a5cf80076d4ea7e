/* Goal    a name holds the old file or the whole new one; nothing else is left in the directory. */
#include "tests/lib/test.h"
#include "worker/whole.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int entries(const char *directory)
{
    int n = 0;
    DIR *dir = opendir(directory);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}

static void assert_holds(const char *path, const char *want)
{
    char have[64] = {0};
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    (void)fread(have, 1, sizeof have - 1, file);
    (void)fclose(file);
    assert_string_equal(have, want);
}

static void test_whole(void **state)
{
    (void)state;
    char directory[] = "/tmp/dp_whole_XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/file", directory);
    struct dp_whole file;
    assert_int_equal(dp_whole_open(path, &file, NULL), DP_OK);
    (void)fputs("one", file.stream);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(dp_whole_commit(&file, NULL), DP_OK);
    assert_holds(path, "one");

    assert_int_equal(dp_whole_open(path, &file, NULL), DP_OK);
    (void)fputs("two", file.stream);
    dp_whole_drop(&file);
    assert_holds(path, "one");
    assert_int_equal(entries(directory), 1);

    struct dp_error err = {0};
    (void)snprintf(path, sizeof path, "%s/no/file", directory);
    assert_int_equal(dp_whole_open(path, &file, &err), DP_IO);
    assert_non_null(strstr(err.text, "no/file"));
    dp_whole_drop(&file);
    (void)snprintf(path, sizeof path, "%s/file", directory);
    (void)unlink(path);
    (void)rmdir(directory);
}

static void test_full_disk(void **state)
{
    (void)state;
    struct dp_whole file;
    struct dp_error err = {0};
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/dp_whole_full_%ld", (long)getpid());
    assert_int_equal(dp_whole_open(path, &file, NULL), DP_OK);
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    (void)fclose(file.stream);
    file.stream = full;
    (void)fputs("lost", file.stream);
    assert_int_equal(dp_whole_commit(&file, &err), DP_IO);
    assert_non_null(strstr(err.text, "No space left"));
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_full_disk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
