/* Hard links that cannot be made. Goal: the caller learns that a copy would do, and the log warns once of a file system that makes
 * none, but not of a link between two file systems. Method: linkat fails as the test says. */
#include "server/store/hard_link.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fails_with;

int __wrap_linkat(int from_at, const char *from, int to_at, const char *to, int flags);
int __wrap_linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    errno = fails_with;
    return -1;
}

/* How many warnings one attempt logs. */
static unsigned warnings(int error, int expected)
{
    char line[512];
    unsigned count = 0;
    int kept = dup(STDERR_FILENO);
    FILE *log = tmpfile();
    assert_true(kept >= 0 && log);
    assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
    fails_with = error;
    int made = link("from", "to"), why = errno;
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    rewind(log);
    while (fgets(line, sizeof line, log))
        count += strstr(line, "cannot make a hard link") != NULL;
    (void)fclose(log);
    assert_int_equal(made, -1);
    assert_int_equal(why, expected);
    return count;
}

static void only_a_file_system_without_links_is_warned_of(void **state)
{
    assert_int_equal(warnings(ENOENT, ENOENT), 0);
    assert_int_equal(warnings(EXDEV, EOPNOTSUPP), 0);
    assert_int_equal(warnings(EPERM, EOPNOTSUPP), 1);
    assert_int_equal(warnings(ENOSYS, EOPNOTSUPP), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_a_file_system_without_links_is_warned_of)};
    return cmocka_run_group_tests_name("hard link", tests, NULL, NULL);
}
