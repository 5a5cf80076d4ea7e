/* Goal    a columns file is whole, and one that says the same needs no room: it is left alone. Method  its inode. */
#include "tests/lib/test.h"
#include "worker/history/columns_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT "\"y\",\"a\"\nlabel,number\n"

static ino_t put(const char *text, const char *path)
{
    char back[64] = "";
    struct stat info;
    struct dp_error err = {0};
    assert_int_equal(dp_columns_file_put(text, path, &err), DP_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    back[fread(back, 1, sizeof back - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_string_equal(back, text);
    assert_int_equal(stat(path, &info), 0);
    return info.st_ino;
}

static void another_text_alone_is_written(void **state)
{
    (void)state;
    static const char *const others[] = {"\"y\",\"a\"\nlabel,number", "\"y\",\"a\"\nlabel,number\n\n",
                                         "\"y\",\"b\"\nlabel,number\n"};
    struct dp_error err = {0};
    char dir[] = "/tmp/dp_columns_XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/columns", dir);
    ino_t first = put(TEXT, path);
    assert_true(put(TEXT, path) == first);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        first = put(TEXT, path);
        assert_true(put(others[i], path) != first);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(dp_columns_file_put(TEXT, path, &err), DP_IO);
    assert_non_null(strstr(err.text, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(another_text_alone_is_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
