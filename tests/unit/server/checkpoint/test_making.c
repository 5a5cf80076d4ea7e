/* Checkpoints made, listed and removed. Goal: wherever a process dies, or the disk is full, each checkpoint that is listed is whole,
 * and the next one can be made and removed. Method: each file call of the room is the last one in turn (all behind it fail), or
 * fails once for want of space; then everything that is listed is verified, a checkpoint is made anew, and old ones are pruned. */
#include "server/checkpoint/checksum.h"
#include "tests/lib/timeouts.h"
#include "tests/unit/server/checkpoint/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- calls that fail */

int __real_open(const char *path, int flags, ...);

static uint32_t calls, dies_at, full_at; /* 0: none fails */

static bool fails(void)
{
    calls++;
    if (full_at > 0 && calls == full_at) {
        errno = ENOSPC;
        return true;
    }
    if (dies_at == 0 || calls < dies_at)
        return false;
    errno = EIO;
    return true;
}

#define WRAPPED(type, name, parameters, arguments)                                                           \
    type __real_##name parameters;                                                                           \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters                                                                            \
    {                                                                                                        \
        return fails() ? -1 : __real_##name arguments;                                                       \
    }
WRAPPED(int, rename, (const char *from, const char *to), (from, to))
WRAPPED(int, link, (const char *from, const char *to), (from, to))
WRAPPED(int, unlink, (const char *path), (path))
WRAPPED(int, rmdir, (const char *path), (path))

/* A disk that gives back other bytes than were written: of the first synced file whose path has this in it, one bit. */
static const char *rots;

static void rot(int fd)
{
    char link[64], path[300], byte;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len > 0 ? len : 0] = '\0';
    if (!rots || !strstr(path, rots))
        return;
    int file = __real_open(path, O_RDWR);
    assert_int_equal(pread(file, &byte, 1, 0), 1);
    if (byte != 0) { /* a segment's page is written later */
        byte = (char)(byte ^ 4);
        assert_int_equal(pwrite(file, &byte, 1, 0), 1);
        rots = NULL;
    }
    assert_int_equal(close(file), 0);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    if (fails() || __real_fsync(fd) != 0)
        return -1;
    rot(fd);
    return 0;
}

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    if (fails() || __real_fdatasync(fd) != 0)
        return -1;
    rot(fd);
    return 0;
}

WRAPPED(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAPPED(ssize_t, write, (int fd, const void *bytes, size_t size), (fd, bytes, size))
WRAPPED(ssize_t, pwritev, (int fd, const struct iovec *pieces, int count, off_t at), (fd, pieces, count, at))

int __real_posix_fallocate(int fd, off_t at, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t at, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t at, off_t bytes)
{
    return fails() ? errno : __real_posix_fallocate(fd, at, bytes);
}

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list args;
    va_start(args, flags);
    if (flags & O_CREAT)
        mode = va_arg(args, mode_t);
    va_end(args);
    if (flags & O_CREAT)
        return fails() ? -1 : __real_open(path, flags, mode);
    return __real_open(path, flags);
}

/* ---- */

/* An order that died left nothing that lasts: the next one makes and removes as ever. */
static void goes_on(struct area *area)
{
    struct dp_error err = {0};
    struct dp_prune pruned;
    uint32_t number;
    size_t before = area_expect_whole(area);
    area_change(area);
    if (area_make(area, &number, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(area_expect_whole(area), before + 1);
    assert_int_equal(area_count(area, "files", "tmp-"), 0);
    assert_int_equal(area_prune(area, 1, &pruned, &err), DP_OK);
    assert_int_equal(area_expect_whole(area), 1);
    assert_int_equal(area_count(area, "files", ""), AREA_SHARDS * 3); /* what the last one names */
    assert_int_equal(dp_checkpoint_sweep(area->directory, area->order, &err), DP_OK);
    assert_int_equal(area_count(area, "", "journal-"), AREA_SHARDS);
    assert_int_equal(area_count(area, "", "ids"), 1);
}

static bool make_dies_at(uint32_t at)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    uint32_t number;
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    area_change(area);
    calls = number = 0;
    dies_at = at;
    enum dp_status st = area_make(area, &number, &err);
    bool died = calls >= at;
    dies_at = 0;
    assert_true(st == DP_OK || died);
    size_t whole = area_expect_whole(area);
    assert_true(whole == 2 || (whole == 1 && st != DP_OK));
    assert_int_equal(number, whole == 2 ? 2 : 0);
    goes_on(area);
    area_free(area);
    return died;
}

static void who_makes_one_may_die_at_any_call(void **state)
{
    uint32_t swept = 0;
    for (uint32_t at = 1; make_dies_at(at); at += dp_stride(7))
        swept = at;
    print_message("%u calls\n", swept);
    assert_true(swept > 60);
}

static bool prune_dies_at(uint32_t at)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    struct dp_prune pruned;
    uint32_t number;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(area_make(area, &number, &err), DP_OK);
        area_change(area);
    }
    calls = 0;
    dies_at = at;
    enum dp_status st = area_prune(area, 2, &pruned, &err);
    bool died = calls >= at;
    dies_at = 0;
    assert_true(st == DP_OK || died);
    size_t whole = area_expect_whole(area);
    assert_true(st != DP_OK ? whole >= 2 && whole <= 4 : whole == 2);
    goes_on(area);
    area_free(area);
    return died;
}

static void who_removes_may_die_at_any_call(void **state)
{
    uint32_t swept = 0;
    for (uint32_t at = 1; prune_dies_at(at); at += dp_stride(3))
        swept = at;
    print_message("%u calls\n", swept);
    assert_true(swept > 15);
}

static bool disk_is_full_at(uint32_t at)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    uint32_t number;
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    uint32_t files = area_count(area, "files", "");
    area_change(area);
    calls = number = 0;
    full_at = at;
    enum dp_status st = area_make(area, &number, &err);
    bool was_full = calls >= at;
    full_at = 0;
    assert_true(st == DP_OK || st == DP_FULL || (st == DP_IO && was_full));
    assert_int_equal(area_expect_whole(area), st == DP_OK ? 2 : area_expect_whole(area));
    assert_int_equal(area_count(area, "files", "tmp-"), 0); /* a failure leaves no temp file */
    assert_int_equal(number,
                     area_expect_whole(area) == 2 ? 2 : 0); /* a command abandons what has no number */
    if (st != DP_OK)
        assert_int_equal(dp_checkpoint_abandon(area->directory, area->order, &err), DP_OK);
    if (st != DP_OK && area_expect_whole(area) == 1) /* what it wrote fills the disk no more */
        assert_int_equal(area_count(area, "files", ""), files);
    goes_on(area);
    area_free(area);
    return was_full;
}

static void the_disk_may_be_full_at_any_call(void **state)
{
    uint32_t swept = 0;
    for (uint32_t at = 1; disk_is_full_at(at); at += dp_stride(7))
        swept = at;
    print_message("%u calls\n", swept);
    assert_true(swept > 60);
}

/* ---- what is written */

/* How many checkpoints share their file of names with this one. */
static uint64_t links_of_names(const struct area *area, uint32_t number)
{
    struct dp_checkpoint_path at, path;
    struct stat is;
    assert_int_equal(dp_checkpoint_path_of(area->directory, number, &at, NULL), DP_OK);
    assert_int_equal(dp_checkpoint_path(&path, NULL, "%s/names.tsv", at.text), DP_OK);
    assert_int_equal(stat(path.text, &is), 0);
    return is.st_nlink;
}

/* What the last checkpoint has, byte for byte, is linked: not where all is to be written, nor where it lost a byte. */
static void names_that_are_known_are_linked(void **state)
{
    static const uint64_t links[] = {2, 2, 1, 2, 2};
    struct area *area = area_new();
    struct dp_error err = {0};
    char rotten[160];
    uint32_t number;
    for (uint32_t i = 1; i <= 5; i++) {
        area->full = i == 3;
        if (i == 4) {
            (void)snprintf(rotten, sizeof rotten, "%s/checkpoint-000003/names.tsv", area->directory);
            area_put_file(rotten, "named", 5);
        }
        assert_int_equal(area_make(area, &number, &err), DP_OK);
        assert_int_equal(number, i);
    }
    area_put_file(rotten, "names", 5);
    for (uint32_t i = 1; i <= 5; i++)
        assert_int_equal(links_of_names(area, i), links[i - 1]);
    assert_int_equal(area_expect_whole(area), 5);
    struct dp_prune pruned;
    assert_int_equal(area_prune(area, 1, &pruned, &err), DP_OK);
    assert_int_equal(links_of_names(area, 5), 1);
    assert_int_equal(area_expect_whole(area), 1);
    area_free(area);
}

static void only_what_changed_is_written(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    uint32_t number;
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    assert_int_equal(number, 1);
    uint64_t tail = area->copied[0].tail.files.file[0].bytes;
    assert_int_equal(area->copied[0].bytes_new, tail + 100000 + 5001 + 16);
    area_change(area);
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    assert_int_equal(number, 2);
    assert_int_equal(area->copied[0].bytes_new, tail + 5002 + 16);
    assert_int_equal(area_count(area, "files", "000010.sst"), AREA_SHARDS);
    assert_int_equal(area_count(area, "files", "CURRENT"),
                     2 * AREA_SHARDS); /* same name and size, other bytes */
    area->full = true;
    area_change(area);
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    assert_int_equal(area->copied[0].bytes_new, tail + 100000 + 5003 + 16);
    assert_int_equal(area_expect_whole(area), 3);
    area_free(area);
}

/* On one file system nothing is copied but tails. */
static void linked_files_take_no_room(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    struct dp_checkpoint_path path;
    struct stat pooled;
    uint32_t number;
    area->link = true;
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    const struct dp_manifest_shard *shard = &area->copied[0];
    assert_int_equal(shard->bytes_new, shard->tail.files.file[0].bytes);
    for (size_t i = 0; i < shard->files.count; i++) {
        const struct dp_manifest_file *file = &shard->files.file[i];
        assert_int_equal(
            dp_checkpoint_path_pool(area->directory, 0x5000, file->name, file->checksum, &path, &err), DP_OK);
        assert_int_equal(stat(path.text, &pooled), 0);
        assert_int_equal(pooled.st_nlink, 2);
    }
    assert_int_equal(area_expect_whole(area), 1);
    area_free(area);
}

/* The pool's name is not believed: a file that went, or is shorter, is written anew. */
static void what_the_pool_lost_is_written_again(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    struct dp_checkpoint_path path;
    uint32_t number;
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    const struct dp_manifest_file *file = &area->copied[0].files.file[0];
    assert_string_equal(file->name, "000010.sst");
    assert_int_equal(
        dp_checkpoint_path_pool(area->directory, 0x5000, file->name, file->checksum, &path, &err), DP_OK);
    assert_int_equal(truncate(path.text, 99999), 0);
    assert_int_equal(area_verify(area, 1, &err), DP_CORRUPT);
    area_change(area);
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    assert_int_equal(area_expect_whole(area), 2); /* both name it */
    area_free(area);
}

static void a_file_of_the_same_size_with_other_bytes_is_not_known(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    char path[300], name[DP_COPY_LINK_BYTES];
    uint32_t number;
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    area_change(area);
    dp_copy_link_name(area->order, 1, name);
    (void)snprintf(path, sizeof path, "%s/%s/000010.sst", area->shard[1], name);
    int fd = __real_open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "x", 1, 77777), 1);
    assert_int_equal(close(fd), 0);
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    assert_int_equal(area_count(area, "files", "000010.sst"), AREA_SHARDS + 1);
    assert_int_equal(area_expect_whole(area), 2);
    area_free(area);
}

static void what_reads_back_differently_is_no_checkpoint(void **state)
{
    static const char *const places[] = {"tmp-", "ids.new-", "tail-0001/"};
    for (size_t i = 0; i < 3; i++) {
        struct area *area = area_new();
        struct dp_error err = {0};
        uint32_t number;
        rots = places[i];
        assert_int_equal(area_make(area, &number, &err), DP_CORRUPT);
        assert_null(rots);
        assert_non_null(strstr(err.text, "reads back"));
        assert_int_equal(area_expect_whole(area), 0);
        assert_int_equal(area_count(area, "files", "tmp-"), 0);
        assert_int_equal(area_make(area, &number, &err), DP_OK);
        assert_int_equal(area_expect_whole(area), 1);
        area_free(area);
    }
}

/* ---- names, locks, places */

static void only_directories_with_a_manifest_are_listed(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    struct dp_checkpoint_list list;
    struct dp_checkpoint_path directory;
    char path[200];
    uint32_t number;
    assert_int_equal(dp_checkpoint_list_read(area->directory, &list, &err), DP_NOT_FOUND);
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    static const char *const others[] = {"checkpoint-7", "checkpoint-000000",  "checkpoint-000005x",
                                         "checkpoint-",  "checkpoint-0000005", "making-0000000000000001"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", area->directory, others[i]);
        assert_int_equal(__real_mkdir(path, 0777), 0);
        (void)snprintf(path, sizeof path, "%s/%s/manifest.json", area->directory, others[i]);
        area_put_file(path, "{}", 2);
    }
    (void)snprintf(path, sizeof path, "%s/checkpoint-000009", area->directory);
    assert_int_equal(__real_mkdir(path, 0777), 0);
    assert_int_equal(dp_checkpoint_list_read(area->directory, &list, &err), DP_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.number[0], 1);
    assert_int_equal(list.greatest, 9);
    dp_checkpoint_list_clear(&list);
    area_change(area);
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    assert_int_equal(number, 10);
    assert_int_equal(dp_checkpoint_find(area->directory, &directory, &number, &err), DP_OK);
    assert_int_equal(number, 10);
    assert_string_equal(directory.text, area->directory);
    (void)snprintf(path, sizeof path, "%s/checkpoint-000001/", area->directory);
    assert_int_equal(dp_checkpoint_find(path, &directory, &number, &err), DP_OK);
    assert_int_equal(number, 1);
    assert_string_equal(directory.text, area->directory);
    (void)snprintf(path, sizeof path, "%s/checkpoint-000010/manifest.json", area->directory);
    assert_int_equal(dp_checkpoint_find(path, &directory, &number, &err), DP_OK);
    assert_int_equal(number, 10);
    (void)snprintf(path, sizeof path, "%s/checkpoint-000009", area->directory);
    assert_int_equal(dp_checkpoint_find(path, &directory, &number, &err), DP_NOT_FOUND);
    assert_int_equal(dp_checkpoint_find(area->top, &directory, &number, &err), DP_NOT_FOUND);
    area_free(area);
}

static void two_do_not_make_at_once(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    struct dp_prune pruned;
    uint32_t number;
    int lock;
    assert_int_equal(dp_checkpoint_lock(area->directory, &lock, &err), DP_OK);
    assert_int_equal(area_make(area, &number, &err), DP_IN_USE);
    assert_int_equal(area_prune(area, 1, &pruned, &err), DP_IN_USE);
    dp_checkpoint_unlock(&lock);
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    area_free(area);
}

static void directories_of_a_store_are_refused(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    char path[300];
    static const char *const inside[] = {"store", "store/checkpoints", "store/shard-0000/a/b/c",
                                         "store/../store/x"};
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", area->top, inside[i]);
        assert_int_equal(dp_checkpoint_begin(path, 1, &err), DP_ARGUMENT);
        assert_non_null(strstr(err.text, "which holds a store"));
    }
    (void)snprintf(path, sizeof path, "%s/link", area->top); /* by another name */
    char store[300];
    (void)snprintf(store, sizeof store, "%s/store", area->top);
    assert_int_equal(symlink(store, path), 0);
    (void)snprintf(path, sizeof path, "%s/link/checkpoints", area->top);
    assert_int_equal(dp_checkpoint_begin(path, 1, &err), DP_ARGUMENT);
    assert_int_equal(dp_checkpoint_place_check(area->directory, &err), DP_OK);
    /* a server hears of it, too */
    struct dp_copy_job *job = area_job(area, 0);
    (void)snprintf(job->directory, sizeof job->directory, "%s/store", area->top);
    (void)snprintf(path, sizeof path, "%s/store/making-%016" PRIx64, area->top, area->order);
    assert_int_equal(__real_mkdir(path, 0777), 0);
    area_copy(area, job);
    assert_int_equal(job->status, DP_ARGUMENT);
    dp_copy_job_free(&job);
    area_free(area);
}

static void a_directory_that_is_not_shared_is_named(void **state)
{
    struct area *area = area_new();
    struct dp_copy_job *job = area_job(area, 0);
    area_copy(area, job);
    assert_int_equal(job->status, DP_ARGUMENT);
    assert_non_null(strstr(job->error.text, "share"));
    assert_null(job->manifest);
    dp_copy_job_free(&job);
    area_free(area);
}

static void sweep_leaves_only_what_is_being_made(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    struct stat is;
    char path[300];
    assert_int_equal(dp_checkpoint_begin(area->directory, 5, &err), DP_OK);
    assert_int_equal(dp_checkpoint_begin(area->directory, 6, &err), DP_OK);
    (void)snprintf(path, sizeof path, "%s/making-0000000000000005/tail-0000", area->directory);
    assert_int_equal(__real_mkdir(path, 0777), 0);
    (void)snprintf(path, sizeof path, "%s/making-0000000000000005/tail-0000/journal-1", area->directory);
    area_put_file(path, "x", 1);
    assert_int_equal(dp_checkpoint_sweep(area->directory, 6, &err), DP_OK);
    assert_int_not_equal(stat(path, &is), 0);
    (void)snprintf(path, sizeof path, "%s/making-0000000000000006", area->directory);
    assert_int_equal(stat(path, &is), 0);
    area_free(area);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_makes_one_may_die_at_any_call),
        cmocka_unit_test(who_removes_may_die_at_any_call),
        cmocka_unit_test(the_disk_may_be_full_at_any_call),
        cmocka_unit_test(names_that_are_known_are_linked),
        cmocka_unit_test(only_what_changed_is_written),
        cmocka_unit_test(linked_files_take_no_room),
        cmocka_unit_test(what_the_pool_lost_is_written_again),
        cmocka_unit_test(what_reads_back_differently_is_no_checkpoint),
        cmocka_unit_test(a_file_of_the_same_size_with_other_bytes_is_not_known),
        cmocka_unit_test(only_directories_with_a_manifest_are_listed),
        cmocka_unit_test(two_do_not_make_at_once),
        cmocka_unit_test(directories_of_a_store_are_refused),
        cmocka_unit_test(a_directory_that_is_not_shared_is_named),
        cmocka_unit_test(sweep_leaves_only_what_is_being_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
