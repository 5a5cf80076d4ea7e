/* Goal: a target is whole or as it was; what a dead writer left goes, what a living one writes stays.
 * Method: writers that commit, drop, die (a process that ends without either) and live, beside files that are nobody's. */
#include "tests/lib/test.h"
#include "tests/unit/worker/read/files.h"
#include "worker/read/draft.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *in(const struct test_dir *dir, const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", dir->path, name);
    return path;
}

static bool is_there(const struct test_dir *dir, const char *name)
{
    return access(in(dir, name), F_OK) == 0;
}

static char read_first(const char *path)
{
    char c = 0;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(&c, 1, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    return c;
}

static void committed_or_dropped(void **state)
{
    (void)state;
    struct test_dir dir;
    struct dp_draft draft;
    char target[256];
    test_dir_open(&dir);
    (void)snprintf(target, sizeof target, "%s", write_text(&dir, "a.decoded", "1"));
    assert_int_equal(dp_draft_open(target, &draft, NULL), DP_OK);
    assert_int_equal(write(draft.fd, "2", 1), 1);
    assert_int_equal(read_first(target), '1');
    assert_int_equal(dp_draft_commit(&draft, target, NULL), DP_OK);
    assert_int_equal(read_first(target), '2');
    assert_int_not_equal(access(draft.path, F_OK), 0);
    assert_int_equal(dp_draft_open(target, &draft, NULL), DP_OK);
    assert_int_equal(write(draft.fd, "3", 1), 1);
    dp_draft_drop(&draft);
    dp_draft_drop(&draft);
    assert_int_equal(read_first(target), '2');
    assert_int_not_equal(access(draft.path, F_OK), 0);
    struct dp_error err = {0};
    assert_int_equal(dp_draft_open("/proc/none/a.decoded", &draft, &err), DP_IO);
    assert_non_null(strstr(err.text, "/proc/none/a.decoded.new-"));
    /* A target that cannot be had leaves nothing. */
    assert_int_equal(dp_draft_open(target, &draft, NULL), DP_OK);
    assert_int_equal(dp_draft_commit(&draft, in(&dir, "none/a"), &err), DP_IO);
    assert_int_not_equal(access(draft.path, F_OK), 0);
    test_dir_close(&dir);
}

/* A writer that is ended in the middle. */
static void die(const char *target)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct dp_draft draft;
        _exit(dp_draft_open(target, &draft, NULL) == DP_OK && write(draft.fd, "x", 1) == 1 ? 0 : 1);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void only_dead_ones_are_swept(void **state)
{
    (void)state;
    static const char *const strangers[] = {
        "a.decoded",
        "a.decoded.new-",
        "a.decoded.new-7",
        "a.decoded.new-7-123",
        "a.decoded.new-7-1234567890",
        "a.decoded.new-x-123456789",
        "a.decoded.new-7-123456789~",
        "a.other.new-7-123456789",
        "decoded.new-7-123456789",
    };
    struct test_dir dir;
    struct dp_draft alive;
    char target[256];
    test_dir_open(&dir);
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++)
        (void)write_text(&dir, strangers[i], "mine");
    (void)snprintf(target, sizeof target, "%s/b.decoded", dir.path);
    assert_int_equal(dp_draft_open(target, &alive, NULL), DP_OK);
    die(target);
    die(target);
    (void)write_text(&dir, "a.decoded.new-7-123456789", "of another boot");
    assert_int_equal(symlink(in(&dir, "a.decoded"), target), 0);
    assert_int_equal(rename(target, in(&dir, "a.decoded.new-8-123456789")), 0);
    assert_int_equal(dp_draft_sweep(dir.path, ".decoded"), 3);
    assert_int_equal(dp_draft_sweep(dir.path, ".decoded"), 0);
    assert_false(is_there(&dir, "a.decoded.new-7-123456789"));
    assert_true(is_there(&dir, "a.decoded.new-8-123456789")); /* a link is nobody's draft */
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++)
        assert_true(is_there(&dir, strangers[i]));
    assert_int_equal(dp_draft_commit(&alive, target, NULL), DP_OK);
    assert_true(is_there(&dir, "b.decoded"));
    assert_int_equal(dp_draft_sweep("/proc/none", ".decoded"), 0);
    assert_int_equal(unlink(in(&dir, "a.decoded.new-8-123456789")), 0);
    test_dir_close(&dir);
}

struct writer {
    const char *directory, *target;
    unsigned failed;
};

static void *write_many(void *context)
{
    struct writer *writer = context;
    for (int i = 0; i < 100; i++) {
        struct dp_draft draft;
        (void)dp_draft_sweep(writer->directory, ".decoded");
        if (dp_draft_open(writer->target, &draft, NULL) != DP_OK ||
            dp_draft_commit(&draft, writer->target, NULL) != DP_OK)
            writer->failed++;
    }
    return NULL;
}

/* Nobody sweeps a draft away under its writer, not in the moment before it is locked either. */
static void writers_and_sweepers_at_once(void **state)
{
    (void)state;
    enum { WRITERS = 4 };
    struct test_dir dir;
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    char target[256];
    test_dir_open(&dir);
    (void)snprintf(target, sizeof target, "%s/a.decoded", dir.path);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.directory = dir.path, .target = target};
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(writers[i].failed, 0);
    assert_int_equal(unlink(target), 0);
    assert_int_equal(rmdir(dir.path), 0); /* nothing else is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed_or_dropped),
        cmocka_unit_test(only_dead_ones_are_swept),
        cmocka_unit_test(writers_and_sweepers_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
