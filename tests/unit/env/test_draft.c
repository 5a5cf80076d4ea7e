/* Goal: a target is whole or as it was; what a dead writer left goes, what a living one writes stays.
 * Method: writers that commit, drop, die (a process that ends without either) and live, beside files that are nobody's; where the
 * file system has files without names and, with open() wrapped, as if it had not (NAMED). */
#include "common/env/draft.h"
#include "tests/lib/test.h"
#include "tests/unit/env/no_nameless.h"

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct test_dir {
    char path[64];
};

static void test_dir_open(struct test_dir *dir)
{
    (void)snprintf(dir->path, sizeof dir->path, "/tmp/dp_draft_XXXXXX");
    assert_non_null(mkdtemp(dir->path));
}

static const char *in(const struct test_dir *dir, const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", dir->path, name);
    return path;
}

static const char *write_text(const struct test_dir *dir, const char *name, const char *text)
{
    FILE *file = fopen(in(dir, name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    return in(dir, name);
}

static unsigned entries(const struct test_dir *dir, bool removed)
{
    unsigned n = 0;
    DIR *list = opendir(dir->path);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));)
        if (entry->d_name[0] != '.') {
            n++;
            if (removed)
                (void)unlink(in(dir, entry->d_name));
        }
    (void)closedir(list);
    return n;
}

static void test_dir_close(const struct test_dir *dir)
{
    (void)entries(dir, true);
    assert_int_equal(rmdir(dir->path), 0);
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
    assert_int_equal(entries(&dir, false), 1 + NAMED);
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
    assert_non_null(strstr(err.text, "'/proc/none/a.decoded': there is no directory '/proc/none'"));
    char name[300];
    memset(name, 'a', 250);
    name[250] = '\0';
    assert_int_equal(dp_draft_open(in(&dir, name), &draft, &err), DP_IO); /* now, not at the commit */
    assert_non_null(strstr(err.text, "too long"));
    /* A target that cannot be had leaves nothing. */
    assert_int_equal(dp_draft_open(target, &draft, NULL), DP_OK);
    assert_int_equal(dp_draft_commit(&draft, in(&dir, "none/a"), &err), DP_IO);
    assert_int_equal(entries(&dir, false), 1);
    test_dir_close(&dir);
}

/* Nothing in the directory of the process is named without a slash. */
static void in_this_directory(void **state)
{
    (void)state;
    struct test_dir dir;
    struct dp_draft draft;
    char here[256], found[64];
    test_dir_open(&dir);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(dir.path), 0);
    assert_int_equal(dp_draft_open("bare", &draft, NULL), DP_OK);
    assert_int_equal(dp_draft_commit(&draft, "bare", NULL), DP_OK);
    assert_int_equal(chdir(here), 0);
    assert_true(is_there(&dir, "bare"));
    assert_true(dp_draft_directory("bare", found, sizeof found) && strcmp(found, ".") == 0);
    assert_true(dp_draft_directory("/bare", found, sizeof found) && strcmp(found, "/") == 0);
    assert_true(dp_draft_directory("/a/b", found, sizeof found) && strcmp(found, "/a") == 0);
    assert_false(dp_draft_directory("/abcdefgh/b", found, 9));
    test_dir_close(&dir);
}

/* A writer that is ended in the middle: what it leaves has a name only where there must be one. */
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
    assert_int_equal(dp_draft_sweep(dir.path, ".decoded"), 1 + 2 * NAMED);
    assert_int_equal(dp_draft_sweep(dir.path, ".decoded"), 0);
    assert_false(is_there(&dir, "a.decoded.new-7-123456789"));
    assert_true(is_there(&dir, "a.decoded.new-8-123456789")); /* a link is nobody's draft */
    (void)write_text(&dir, "b.decoded.new-7-123456789", "of this one");
    (void)write_text(&dir, "cb.decoded.new-7-123456789", "of another one");
    assert_int_equal(dp_draft_sweep_of(target), 1);
    assert_int_equal(dp_draft_sweep_of(target), 0);
    assert_int_equal(dp_draft_sweep_of(in(&dir, "")), 0);
    assert_true(is_there(&dir, "cb.decoded.new-7-123456789"));
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
        cmocka_unit_test(in_this_directory),
        cmocka_unit_test(only_dead_ones_are_swept),
        cmocka_unit_test(writers_and_sweepers_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
