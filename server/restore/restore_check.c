#include "server/restore/restore_check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4u /* the caller's among them: while some compute, others wait for the disk */

struct restore_checked {
    char *from, *checksum;
    uint64_t bytes;
};

struct dp_restore_check {
    void (*seen)(void *context, uint64_t bytes);
    void *context;
    struct restore_checked *file;
    size_t count, room;
    _Atomic size_t next;
    _Atomic uint64_t bytes;
    atomic_bool failed;
};

struct restore_checker {
    struct dp_restore_check *check;
    pthread_t thread;
    bool runs, is_caller;
    enum dp_status status;
    struct dp_error error;
};

enum dp_status dp_restore_check_new(void (*seen)(void *context, uint64_t bytes), void *context,
                                    struct dp_restore_check **out, struct dp_error *err)
{
    struct dp_restore_check *check = *out = calloc(1, sizeof *check);
    if (!check)
        return dp_fail(err, DP_NOMEM, "no memory to check files");
    check->seen = seen;
    check->context = context;
    return DP_OK;
}

enum dp_status dp_restore_check_add(struct dp_restore_check *check, const struct dp_restore_file *file,
                                    struct dp_error *err)
{
    if (check->count == check->room) {
        size_t room = check->room ? 2 * check->room : 64;
        struct restore_checked *more = realloc(check->file, room * sizeof *more);
        if (!more)
            return dp_fail(err, DP_NOMEM, "no memory to check %zu files", room);
        check->file = more;
        check->room = room;
    }
    struct restore_checked *one = &check->file[check->count];
    *one = (struct restore_checked){strdup(file->from), strdup(file->checksum), file->bytes};
    check->count++;
    return one->from && one->checksum ? DP_OK : dp_fail(err, DP_NOMEM, "no memory to check %s", file->from);
}

static void *work(void *context)
{
    struct restore_checker *checker = context;
    struct dp_restore_check *check = checker->check;
    for (;;) {
        size_t at = atomic_fetch_add(&check->next, 1);
        if (at >= check->count || atomic_load(&check->failed))
            return NULL;
        const struct restore_checked *one = &check->file[at];
        const struct dp_restore_file file = {
            .from = one->from, .bytes = one->bytes, .checksum = one->checksum};
        checker->status = dp_restore_file_check(&file, &checker->error);
        if (checker->status != DP_OK) {
            atomic_store(&check->failed, true);
            return NULL;
        }
        uint64_t bytes = atomic_fetch_add(&check->bytes, one->bytes) + one->bytes;
        if (checker->is_caller)
            check->seen(check->context, bytes);
    }
}

enum dp_status dp_restore_check_end(struct dp_restore_check *check, struct dp_error *err)
{
    struct restore_checker checker[THREADS] = {{.check = check, .is_caller = true}};
    enum dp_status st = DP_OK;
    for (uint32_t i = 1; i < THREADS && i < check->count; i++) {
        checker[i].check = check;
        checker[i].runs = pthread_create(&checker[i].thread, NULL, work, &checker[i]) == 0;
    } /* without one it takes longer */
    (void)work(&checker[0]);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (checker[i].runs)
            (void)pthread_join(checker[i].thread, NULL);
        if (st == DP_OK && checker[i].status != DP_OK) {
            st = checker[i].status;
            *err = checker[i].error;
        }
    }
    return st;
}

void dp_restore_check_free(struct dp_restore_check **out)
{
    struct dp_restore_check *check = *out;
    *out = NULL;
    if (!check)
        return;
    for (size_t i = 0; i < check->count; i++) {
        free(check->file[i].from);
        free(check->file[i].checksum);
    }
    free(check->file);
    free(check);
}
