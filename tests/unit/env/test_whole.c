/* Goal    a name holds the old file or the whole new one, whatever ends the writer, and nothing else is left in the directory;
 *         links, permissions and what is no file stay what they are.
 * Method  writers that commit, drop and are killed; as a user who may not; with files that have no name, and (NAMED) must have. */
#include "common/env/whole.h"
#include "tests/lib/test.h"
#include "tests/unit/env/no_nameless.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static char directory[64];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof directory, "/tmp/dp_whole_XXXXXX");
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
    (void)state;
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
    struct dp_whole file;
    enum dp_status st = dp_whole_open(path, &file, err);
    if (st != DP_OK)
        return st;
    (void)fputs(text, file.stream);
    return dp_whole_commit(&file, err);
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
    (void)state;
    struct dp_whole file;
    const char *path = in("file");
    assert_int_equal(dp_whole_open(path, &file, NULL), DP_OK);
    assert_false(file.direct);
    (void)fputs("one", file.stream);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(dp_whole_commit(&file, NULL), DP_OK);
    assert_holds(path, "one");

    assert_int_equal(dp_whole_open(path, &file, NULL), DP_OK);
    (void)fputs("two", file.stream);
    (void)fflush(file.stream);
    assert_holds(path, "one");
    dp_whole_drop(&file);
    dp_whole_drop(&file);
    assert_holds(path, "one");
    assert_int_equal(entries(false), 1);
    file = (struct dp_whole){0}; /* descriptor 0 is not its own */
    dp_whole_drop(&file);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0 || fcntl(STDOUT_FILENO, F_GETFD) >= 0);
}

static void what_cannot_be_written(void **state)
{
    (void)state;
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
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct dp_error err = {0};
        if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
            _exit(2);
        enum dp_status st = put(path, "x", &err);
        _exit(words ? st == DP_OK || !strstr(err.text, words) : st != DP_OK);
    }
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void without_permission(void **state)
{
    (void)state;
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
    (void)state;
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
    (void)state;
    struct stat is;
    assert_int_equal(put(in("file"), "old", NULL), DP_OK);
    assert_int_equal(symlink("file", in("relative")), 0);
    assert_int_equal(symlink(in("relative"), in("absolute")), 0);
    assert_int_equal(symlink("new", in("dangling")), 0);
    assert_int_equal(put(in("absolute"), "through two", NULL), DP_OK);
    assert_holds(in("file"), "through two");
    assert_int_equal(put(in("dangling"), "made", NULL), DP_OK);
    assert_holds(in("new"), "made");
    static const char *const links[] = {"relative", "absolute", "dangling"};
    for (int i = 0; i < 3; i++)
        assert_true(lstat(in(links[i]), &is) == 0 && S_ISLNK(is.st_mode));
    assert_int_equal(entries(false), 5);
    assert_int_equal(symlink("none/file", in("lost")), 0);
    assert_refused(in("lost"), "there is no directory '");
}

static void pipes_and_devices_are_written_as_they_are(void **state)
{
    (void)state;
    struct dp_whole file;
    struct stat is;
    char have[8] = {0};
    assert_int_equal(mkfifo(in("pipe"), 0600), 0);
    int reader = open(in("pipe"), O_RDWR);
    assert_true(reader >= 0);
    assert_int_equal(dp_whole_open(in("pipe"), &file, NULL), DP_OK);
    assert_true(file.direct);
    (void)fputs("abc", file.stream);
    assert_int_equal(dp_whole_commit(&file, NULL), DP_OK);
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
    (void)state;
    /* "stdout" is what /dev/stdout is: who wrote wrongly here would replace that for all of the machine. */
    static const char *const names[] = {"/dev/fd/1", "/proc/self/fd/1", "stdout", "link"};
    assert_int_equal(symlink("/proc/self/fd/1", in("stdout")), 0);
    assert_int_equal(symlink("stdout", in("link")), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int status = 0;
        assert_int_equal(put(in("log"), "before ", NULL), DP_OK);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            int log = open(in("log"), O_WRONLY | O_APPEND);
            if (log < 0 || dup2(log, STDOUT_FILENO) < 0)
                _exit(1);
            _exit(put(i >= 2 ? in(names[i]) : names[i], "after", NULL) == DP_OK ? 0 : 1);
        }
        assert_true(waitpid(child, &status, 0) == child && status == 0);
        assert_holds(in("log"), "before after");
        assert_int_equal(entries(false), 3);
    }
}

/* Killed in the middle: nothing is left, or where it must have a name, nothing once the file is written again. */
static void killed_writers(void **state)
{
    (void)state;
    assert_int_equal(put(in("file"), "old", NULL), DP_OK);
    for (int i = 0; i < 3; i++) {
        int status = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct dp_whole file;
            if (dp_whole_open(in("file"), &file, NULL) != DP_OK || fputs("half", file.stream) < 0 ||
                fflush(file.stream) != 0)
                _exit(1);
            (void)raise(SIGKILL);
        }
        assert_true(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        assert_holds(in("file"), "old");
        assert_int_equal(entries(false), 1 + NAMED);
    }
    assert_int_equal(put(in("file"), "new", NULL), DP_OK);
    assert_holds(in("file"), "new");
    assert_int_equal(entries(false), 1);
}

static void full_disk(void **state)
{
    (void)state;
    struct dp_whole file;
    struct dp_error err = {0};
    assert_int_equal(dp_whole_open(in("file"), &file, NULL), DP_OK);
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    (void)fclose(file.stream);
    file.stream = full;
    (void)fputs("lost", file.stream);
    assert_int_equal(dp_whole_commit(&file, &err), DP_IO);
    assert_non_null(strstr(err.text, "No space left"));
    assert_int_equal(entries(false), 0);
}

int main(void)
{
#define WHOLE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WHOLE(old_or_new),
        WHOLE(what_cannot_be_written),
        WHOLE(without_permission),
        WHOLE(permissions_stay),
        WHOLE(links_stay),
        WHOLE(pipes_and_devices_are_written_as_they_are),
        WHOLE(standard_output_by_name),
        WHOLE(killed_writers),
        WHOLE(full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
