/* Goal: each limit that is too low is refused by name, with both numbers, and one that is just enough is not; a file that may not grow
 * is an error and not the end. Method: real limits, in a process of its own for each. */
#include "common/env/atomic_file.h"
#include "common/env/limits.h"
#include "tests/lib/child.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

struct limited {
    int resource;
    uint64_t limit;
    struct dp_limits_need need;
    const char *texts[3]; /* of a refusal; none: accepted */
};

/* 0: as expected. */
static int differs(const struct limited *limited)
{
    struct dp_error err = {0};
    const struct rlimit limit = {.rlim_cur = limited->limit, .rlim_max = limited->limit};
    if (setrlimit((__rlimit_resource_t)limited->resource, &limit) != 0)
        return 2;
    (void)dp_limits_begin();
    enum dp_status st = dp_limits_check("this test", &limited->need, &err);
    bool good = st == (limited->texts[0] ? DP_FULL : DP_OK);
    for (size_t i = 0; i < 3 && limited->texts[i]; i++)
        good = good && strstr(err.text, limited->texts[i]);
    if (!good)
        fprintf(stderr, "%s: %s\n", dp_status_name((int)st), err.text);
    return !good;
}

static void expect(const struct limited *limited)
{
    pid_t child = fork();
    if (child == 0)
        _exit(differs(limited));
    assert_int_equal(dp_exit_of(child), 0);
}

static void a_limit_that_is_too_low_is_named(void **state)
{
    expect(&(struct limited){RLIMIT_NOFILE,
                             40,
                             {.files = 41},
                             {"this test needs about 41 open files", "its limit is 40", "'ulimit -n'"}});
    expect(&(struct limited){RLIMIT_NOFILE, 40, {.files = 40}, {NULL}});
    expect(&(struct limited){RLIMIT_FSIZE,
                             10 * MIB,
                             {.file_bytes = 11 * MIB},
                             {"needs files of 11 MiB", "limit is 10 MiB", "'ulimit -f'"}});
    expect(&(struct limited){RLIMIT_FSIZE, 10 * MIB, {.file_bytes = 10 * MIB}, {NULL}});
}

/* Sanitizers reserve terabytes. */
static void address_space_is_compared_with_what_is_left(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    expect(&(struct limited){RLIMIT_AS,
                             1024 * MIB,
                             {.memory_bytes = 1024 * MIB},
                             {" MiB of address space", "limit is 1024 MiB", "'ulimit -v'"}});
    expect(&(struct limited){RLIMIT_AS, 1024 * MIB, {.memory_bytes = 512 * MIB}, {NULL}});
    /* Stacks count: 1,024 of them take more than 1 GiB. */
    expect(&(struct limited){RLIMIT_AS, 1024 * MIB, {.threads = 1024}, {"'ulimit -v'"}});
    expect(&(struct limited){RLIMIT_AS, 1024 * MIB, {.threads = 4}, {NULL}});
}

static void nothing_is_refused_without_limits(void **state)
{
    const struct dp_limits_need need = {.files = 10, .threads = 4, .memory_bytes = MIB, .file_bytes = MIB};
    struct dp_error err;
    assert_int_equal(dp_limits_check("this test", &need, &err), DP_OK);
}

static void soft_limit_of_files_is_raised(void **state)
{
    struct rlimit before, low, now;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = 32;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(dp_limits_begin(), before.rlim_max);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, before.rlim_max);
}

/* Without dp_limits_begin the kernel would end the process. */
static int write_too_much(const char *path)
{
    static char block[65536];
    struct dp_atomic_file file = {0};
    struct dp_error err = {0};
    const struct rlimit limit = {.rlim_cur = 10000, .rlim_max = 10000};
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)dp_limits_begin();
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || dp_atomic_file_open(path, &file, &err) != DP_OK)
        return 2;
    (void)fwrite(block, 1, sizeof block, file.stream);
    return dp_atomic_file_commit(&file, &err) == DP_FULL && strstr(err.text, "'ulimit -f'") ? 0 : 1;
}

static void a_file_that_may_not_grow_is_a_full_disk(void **state)
{
    char path[] = "/tmp/dp_test_limits_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(write_too_much(path));
    assert_int_equal(dp_exit_of(child), 0);
    (void)unlink(path);
}

static void errors_of_no_more_space(void **state)
{
    assert_true(dp_limits_full(ENOSPC) && dp_limits_full(EDQUOT) && dp_limits_full(EFBIG));
    assert_false(dp_limits_full(EIO) || dp_limits_full(0));
    assert_string_equal(dp_limits_remedy(EDQUOT), "; make room on that disk");
    assert_string_equal(dp_limits_remedy(EFBIG), "; raise 'ulimit -f'");
    assert_string_equal(dp_limits_remedy(EIO), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_that_is_too_low_is_named),
        cmocka_unit_test(address_space_is_compared_with_what_is_left),
        cmocka_unit_test(nothing_is_refused_without_limits),
        cmocka_unit_test(soft_limit_of_files_is_raised),
        cmocka_unit_test(a_file_that_may_not_grow_is_a_full_disk),
        cmocka_unit_test(errors_of_no_more_space),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
