/* Goal    a name holds the old file or all of the new one, whatever ends the writer; what a dead writer left goes, what a living
 *         one writes stays; links, permissions, pipes and devices stay what they are.
 * Method  writers that commit, drop, are killed, live, and run at once, beside files that are nobody's; as a user who may not. */
#define _GNU_SOURCE /* setgroups */
#include "common/env/atomic_file.h"
#include "tests/lib/child.h"
#include "tests/lib/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

static char directory[64];
static int setup(void **state)
{
    (void)snprintf(directory, sizeof directory, "/tmp/dp_atomic_file_XXXXXX");
    (void)umask(022);
    return mkdtemp(directory) ? 0 : -1;
}

static const char *in(const char *name)
{
    static char path[4][512];
    static unsigned next;
    char *to = path[next++ % 4];
    (void)snprintf(to, sizeof path[0], "%s/%s", directory, name);
    return to;
}

static unsigned entries(bool removed)
{
    unsigned n = 0;
    DIR *dir = opendir(directory);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            n++;
            if (removed)
                (void)remove(in(entry->d_name));
        }
    (void)closedir(dir);
    return n;
}

static int teardown(void **state)
{
    (void)entries(true);
    return rmdir(directory);
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

static enum dp_status put(const char *path, const char *text, struct dp_error *err)
{
    struct dp_atomic_file file;
    enum dp_status st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        return st;
    (void)fputs(text, file.stream);
    return dp_atomic_file_commit(&file, err);
}

static void assert_refused(const char *path, const char *words)
{
    struct dp_error err = {0};
    unsigned before = entries(false);
    if (put(path, "x", &err) == DP_OK || !strstr(err.text, words))
        fail_msg("'%.80s': '%s' lacks '%s'", path, err.text, words);
    assert_int_equal(entries(false), before);
}

static void old_or_new(void **state)
{
    struct dp_atomic_file file;
    const char *path = in("file");
    assert_int_equal(dp_atomic_file_open(path, &file, NULL), DP_OK);
    assert_non_null(file.temp);
    (void)fputs("one", file.stream);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(dp_atomic_file_commit(&file, NULL), DP_OK);
    assert_holds(path, "one");

    assert_int_equal(dp_atomic_file_open(path, &file, NULL), DP_OK);
    (void)fputs("two", file.stream);
    (void)fflush(file.stream);
    assert_holds(path, "one");
    dp_atomic_file_drop(&file);
    dp_atomic_file_drop(&file);
    assert_holds(path, "one");
    assert_int_equal(entries(false), 1);
    file = (struct dp_atomic_file){0}; /* descriptor 0 is not its own */
    dp_atomic_file_drop(&file);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0 || fcntl(STDOUT_FILENO, F_GETFD) >= 0);
}

static void what_cannot_be_written(void **state)
{
    char long_path[5001];
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    assert_int_equal(put(in("file"), "old", NULL), DP_OK);
    assert_refused(in("no/file"), "there is no directory '");
    assert_refused("", "is empty");
    assert_refused(directory, "is a directory");
    assert_refused(in("file/x"), "Not a directory");
    assert_refused(long_path, "too long");
    assert_int_equal(symlink("loop", in("loop")), 0);
    assert_refused(in("loop"), "symbolic links");
    assert_refused("/proc/self/status/none", "/proc/self/status/none");
    assert_holds(in("file"), "old");
}

/* By a child that has become nobody. words: of its failure; NULL: there is none. */
static void as_nobody(const char *path, const char *words)
{
    pid_t child = fork();
    if (child == 0) {
        struct dp_error err = {0};
        if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
            _exit(2);
        enum dp_status st = put(path, "x", &err);
        _exit(words ? st == DP_OK || !strstr(err.text, words) : st != DP_OK);
    }
    assert_int_equal(dp_exit_of(child), 0);
}

static void without_permission(void **state)
{
    assert_int_equal(put(in("file"), "old", NULL), DP_OK);
    assert_int_equal(chmod(in("file"), 0444), 0);
    assert_int_equal(chmod(directory, 0777), 0);
    as_nobody(in("file"), "Permission denied"); /* though the directory would allow another of that name */
    assert_int_equal(chmod(directory, 0555), 0);
    as_nobody(in("new"), "no permission to make files in '");
    assert_int_equal(chmod(directory, 0000), 0);
    as_nobody(in("new"), "Permission denied");
    assert_int_equal(chmod(directory, 0700), 0);
    assert_holds(in("file"), "old");
    assert_int_equal(entries(false), 1);
}

static void permissions_stay(void **state)
{
    struct stat is;
    static const mode_t modes[] = {0600, 0644, 0664, 0755, 0606};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(put(in("file"), "1", NULL), DP_OK);
        assert_int_equal(chmod(in("file"), modes[i]), 0);
        if (geteuid() == 0)
            assert_int_equal(chown(in("file"), NOBODY, NOBODY), 0);
        assert_int_equal(put(in("file"), "2", NULL), DP_OK);
        assert_int_equal(stat(in("file"), &is), 0);
        assert_int_equal(is.st_mode & 07777, modes[i]);
        assert_int_equal(is.st_uid, geteuid() == 0 ? NOBODY : geteuid());
        assert_holds(in("file"), "2");
    }
    assert_int_equal(put(in("new"), "1", NULL), DP_OK);
    assert_int_equal(stat(in("new"), &is), 0);
    assert_int_equal(is.st_mode & 07777, 0644);
}

static void links_stay(void **state)
{
    struct stat is;
    assert_int_equal(put(in("file"), "old", NULL), DP_OK);
    assert_int_equal(symlink("file", in("relative")), 0);
    assert_int_equal(symlink(in("relative"), in("absolute")), 0);
    assert_int_equal(symlink("new", in("dangling")), 0);
    assert_int_equal(put(in("absolute"), "through two", NULL), DP_OK);
    assert_holds(in("file"), "through two");
    assert_refused(in("dangling"), "it is a link to a file that does not exist");
    static const char *const links[] = {"relative", "absolute", "dangling"};
    for (int i = 0; i < 3; i++)
        assert_true(lstat(in(links[i]), &is) == 0 && S_ISLNK(is.st_mode));
    assert_int_equal(entries(false), 4);
}

static void pipes_and_devices_are_written_as_they_are(void **state)
{
    struct dp_atomic_file file;
    struct stat is;
    char have[8] = {0};
    assert_int_equal(mkfifo(in("pipe"), 0600), 0);
    int reader = open(in("pipe"), O_RDWR);
    assert_true(reader >= 0);
    assert_int_equal(dp_atomic_file_open(in("pipe"), &file, NULL), DP_OK);
    assert_null(file.temp);
    (void)fputs("abc", file.stream);
    assert_int_equal(dp_atomic_file_commit(&file, NULL), DP_OK);
    assert_int_equal(read(reader, have, 3), 3);
    assert_string_equal(have, "abc");
    assert_int_equal(put(in("pipe"), "", NULL), DP_OK);
    assert_true(stat(in("pipe"), &is) == 0 && S_ISFIFO(is.st_mode));
    (void)close(reader);
    assert_int_equal(symlink("/dev/null", in("null")), 0);
    assert_int_equal(chmod(directory, 0755), 0);
    as_nobody("/dev/null", NULL); /* who could not put a file in its place */
    as_nobody(in("null"), NULL);
    as_nobody("/dev/full", "'/dev/full': No space left");
    assert_int_equal(entries(false), 2);
}

/* Standard output that goes to a file: at its present place, behind what stands there, as a shell's >> wants. */
static void standard_output_by_name(void **state)
{
    static const char *const names[] = {"/dev/fd/1", "/proc/self/fd/1", "/dev/stdout"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(put(in("log"), "before ", NULL), DP_OK);
        pid_t child = fork();
        if (child == 0) {
            int log = open(in("log"), O_WRONLY | O_APPEND);
            if (log < 0 || dup2(log, STDOUT_FILENO) < 0)
                _exit(1);
            _exit(put(names[i], "after", NULL) == DP_OK ? 0 : 1);
        }
        assert_int_equal(dp_exit_of(child), 0);
        assert_holds(in("log"), "before after");
        assert_int_equal(entries(false), 1);
    }
}

/* Killed in the middle: what is left goes with the next writer of the same file. */
static void killed_writers(void **state)
{
    assert_int_equal(put(in("file"), "old", NULL), DP_OK);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct dp_atomic_file file;
            if (dp_atomic_file_open(in("file"), &file, NULL) != DP_OK || fputs("half", file.stream) < 0 ||
                fflush(file.stream) != 0)
                _exit(1);
            (void)raise(SIGKILL);
        }
        assert_int_equal(dp_exit_of(child), -SIGKILL);
        assert_holds(in("file"), "old");
        assert_int_equal(entries(false), 2); /* the one before was swept */
    }
    assert_int_equal(put(in("file"), "new", NULL), DP_OK);
    assert_holds(in("file"), "new");
    assert_int_equal(entries(false), 1);
}

/* A target that becomes a directory meanwhile. */
static void a_name_that_cannot_be_taken(void **state)
{
    struct dp_atomic_file file;
    struct dp_error err = {0};
    assert_int_equal(dp_atomic_file_open(in("file"), &file, NULL), DP_OK);
    assert_int_equal(mkdir(in("file"), 0700), 0);
    assert_int_equal(dp_atomic_file_commit(&file, &err), DP_IO);
    assert_non_null(strstr(err.text, "Is a directory"));
    assert_int_equal(rmdir(in("file")), 0);
    assert_int_equal(entries(false), 0);
}

/* Nothing in the directory of the process is named without a slash. */
static void in_this_directory(void **state)
{
    char here[256];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(directory), 0);
    enum dp_status st = put("bare", "1", NULL);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(st, DP_OK);
    assert_holds(in("bare"), "1");
}

/* By a child that is nobody, in one more group. */
static void written_by_a_member_of(gid_t group)
{
    pid_t child = fork();
    if (child == 0)
        _exit(setgroups(1, &group) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0 ||
              put(in("file"), "x", NULL) != DP_OK);
    assert_int_equal(dp_exit_of(child), 0);
}

/* A group's rights are that group's. */
static void no_rights_for_another_group(void **state)
{
    static const struct {
        mode_t before, after;
        gid_t member; /* of the file's group or another */
        gid_t group;
    } cases[] = {{0660, 0660, 1234, 1234}, {0666, 0606, 4321, NOBODY}};
    struct stat is;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(directory, 0777), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(put(in("file"), "1", NULL), DP_OK);
        assert_int_equal(chown(in("file"), 0, 1234), 0);
        assert_int_equal(chmod(in("file"), cases[i].before), 0);
        written_by_a_member_of(cases[i].member);
        assert_int_equal(stat(in("file"), &is), 0);
        assert_int_equal(is.st_mode & 07777, cases[i].after);
        assert_int_equal(is.st_gid, cases[i].group);
        assert_int_equal(unlink(in("file")), 0);
    }
}

static void only_dead_ones_are_swept(void **state)
{
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
    enum { STRANGERS = sizeof strangers / sizeof strangers[0] };
    struct dp_atomic_file alive;
    for (size_t i = 0; i < STRANGERS; i++)
        assert_int_equal(put(in(strangers[i]), "mine", NULL), DP_OK);
    assert_int_equal(dp_atomic_file_open(in("b.decoded"), &alive, NULL), DP_OK);
    assert_int_equal(put(in("a.decoded.new-7-123456789"), "of another boot", NULL), DP_OK);
    assert_int_equal(symlink("a.decoded", in("a.decoded.new-8-123456789")), 0);
    assert_int_equal(dp_atomic_file_sweep(directory, ".decoded"), 1);
    assert_int_equal(dp_atomic_file_sweep(directory, ".decoded"), 0);
    assert_int_not_equal(access(in("a.decoded.new-7-123456789"), F_OK), 0);
    assert_int_equal(access(in("a.decoded.new-8-123456789"), F_OK), 0); /* a link is nobody's temp file */
    for (size_t i = 0; i < STRANGERS; i++)
        assert_holds(in(strangers[i]), "mine");
    assert_int_equal(dp_atomic_file_commit(&alive, NULL), DP_OK);
    assert_int_equal(put(in("b.decoded.new-7-123456789"), "of this one", NULL), DP_OK);
    assert_int_equal(put(in("cb.decoded.new-7-123456789"), "of another one", NULL), DP_OK);
    assert_int_equal(put(in("b.decoded"), "new", NULL), DP_OK);
    assert_int_not_equal(access(in("b.decoded.new-7-123456789"), F_OK), 0);
    assert_holds(in("cb.decoded.new-7-123456789"), "of another one");
    assert_int_equal(dp_atomic_file_sweep("/proc/none", ".decoded"), 0);
}

struct writer {
    unsigned failed;
};

static void *write_many(void *context)
{
    struct writer *writer = context;
    char target[128];
    (void)snprintf(target, sizeof target, "%s/a.decoded", directory);
    for (int i = 0; i < 100; i++) {
        (void)dp_atomic_file_sweep(directory, ".decoded");
        writer->failed += put(target, "x", NULL) != DP_OK;
    }
    return NULL;
}

/* Nobody sweeps a temp file away under its writer, not in the moment before it is locked either. */
static void writers_and_sweepers_at_once(void **state)
{
    enum { WRITERS = 4 };
    struct writer writers[WRITERS] = {{0}};
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(writers[i].failed, 0);
    assert_int_equal(entries(false), 1);
}

/* A write that fails long before the end says why, too. */
static void full_in_the_middle(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        static const char much[1 << 16];
        const struct rlimit limit = {.rlim_cur = 10000, .rlim_max = 10000};
        struct dp_atomic_file file;
        struct dp_error err = {0};
        (void)signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || dp_atomic_file_open(in("file"), &file, NULL) != DP_OK)
            _exit(2);
        (void)fwrite(much, 1, sizeof much, file.stream);
        _exit(dp_atomic_file_commit(&file, &err) != DP_FULL || !strstr(err.text, "File too large"));
    }
    assert_int_equal(dp_exit_of(child), 0);
    assert_int_equal(entries(false), 0);
}

static void full_disk(void **state)
{
    struct dp_atomic_file file;
    struct dp_error err = {0};
    assert_int_equal(dp_atomic_file_open(in("file"), &file, NULL), DP_OK);
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    (void)fclose(file.stream);
    file.stream = full;
    (void)fputs("lost", file.stream);
    assert_int_equal(dp_atomic_file_commit(&file, &err), DP_FULL);
    assert_non_null(strstr(err.text, "No space left"));
    assert_int_equal(entries(false), 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(old_or_new),
        TEST(in_this_directory),
        TEST(what_cannot_be_written),
        TEST(without_permission),
        TEST(permissions_stay),
        TEST(links_stay),
        TEST(pipes_and_devices_are_written_as_they_are),
        TEST(standard_output_by_name),
        TEST(killed_writers),
        TEST(a_name_that_cannot_be_taken),
        TEST(no_rights_for_another_group),
        TEST(only_dead_ones_are_swept),
        TEST(writers_and_sweepers_at_once),
        TEST(full_in_the_middle),
        TEST(full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
