#include "worker/allreduce/mpi_reducer.h"

#include "common/base/log.h"
#include "common/env/clock.h"
#include "worker/allreduce/watchdog.h"

#include <inttypes.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)
/* Before the settings are known. */
#define START_MS 60000u
/* A meet looks for so long without a sleep, then sleeps between two looks. */
#define EAGER_NS UINT64_C(20000)
#define SLEEP_NS 50000
/* Rank 0 knows the missing rank: the others wait longer, so that it can name it. */
#define AFTER_FIRST_NS (2000 * MS_NS)
/* Floats of one call: MPI counts in int. */
#define SUM_MAX   ((size_t)1 << 28)
#define NAMED_MAX 8u

enum { TAG_CAME = 1, TAG_ALL_CAME, TAG_GIVEN };

struct dp_mpi_reducer {
    struct dp_watchdog watchdog;
    bool watched; /* the watchdog was started */
    int rank, ranks;
    uint64_t limit_ns;    /* of a blocking call, and of a sum */
    MPI_Request *request; /* [2 * ranks] */
    enum dp_mpi_sum sum;
    int *counts, *places, *own_counts, *own_places; /* [ranks]: of a sum in order */
    float *parts;                                   /* its part of all ranks */
    size_t parts_room;
};

static enum dp_status failed(const char *what, int code, struct dp_error *err)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    (void)MPI_Error_string(code, text, &length);
    return dp_fail(err, DP_IO,
                   "%s failed: %.200s; without all of its ranks an all-reduce training cannot go on: start "
                   "it again",
                   what, text);
}

/* ---- meeting */

/* Whether all requests are complete before the limit; those that are not are left under way. */
static enum dp_status await(MPI_Request *request, int n, uint64_t limit_ns, bool *all, struct dp_error *err)
{
    const struct dp_clock clock = dp_clock_real();
    const struct timespec pause = {.tv_nsec = SLEEP_NS};
    uint64_t begun_ns = dp_clock_ns(&clock);
    for (*all = false;;) {
        int done = 0, code = MPI_Testall(n, request, &done, MPI_STATUSES_IGNORE);
        if (code != MPI_SUCCESS)
            return failed("MPI_Testall", code, err);
        *all = done != 0;
        uint64_t since_ns = dp_clock_ns(&clock) - begun_ns;
        if (*all || since_ns > limit_ns)
            return DP_OK;
        if (since_ns < EAGER_NS)
            (void)sched_yield();
        else
            (void)nanosleep(&pause, NULL);
    }
}

/* request: of ranks 1, 2, ... */
static enum dp_status name_missing(const struct dp_mpi_reducer *r, const MPI_Request *request,
                                   uint64_t limit_ns, struct dp_error *err)
{
    char names[96] = "";
    size_t at = 0, named = 0;
    for (int w = 1; w < r->ranks; w++) {
        if (request[w - 1] == MPI_REQUEST_NULL) /* complete */
            continue;
        if (named++ < NAMED_MAX)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%d", at ? ", " : "", w);
    }
    return dp_fail(err, DP_TIMEOUT,
                   "rank %s%s did not come within %.1f s: it computes for longer, hangs, or its machine is "
                   "gone; look at its log, start the training again, or raise --timeout "
                   "(training.timeout_ms)",
                   names, named > NAMED_MAX ? ", ..." : "", (double)limit_ns / 1e9);
}

/* Testall leaves all requests as they are unless all are complete: a look at each shows which are. */
static enum dp_status look_at_each(MPI_Request *request, int n, struct dp_error *err)
{
    for (int i = 0; i < n; i++) {
        int done, code = MPI_Test(&request[i], &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return failed("MPI_Test", code, err);
    }
    return DP_OK;
}

static enum dp_status meet_first(struct dp_mpi_reducer *r, uint64_t limit_ns, struct dp_error *err)
{
    bool all = false;
    int others = r->ranks - 1, code = MPI_SUCCESS;
    for (int w = 1; code == MPI_SUCCESS && w < r->ranks; w++)
        code = MPI_Irecv(NULL, 0, MPI_BYTE, w, TAG_CAME, MPI_COMM_WORLD, &r->request[w - 1]);
    if (code != MPI_SUCCESS)
        return failed("MPI_Irecv", code, err);
    enum dp_status st = await(r->request, others, limit_ns, &all, err);
    if (st == DP_OK && !all)
        st = look_at_each(r->request, others, err);
    if (st == DP_OK && !all)
        st = name_missing(r, r->request, limit_ns, err);
    if (st != DP_OK)
        return st;
    for (int w = 1; code == MPI_SUCCESS && w < r->ranks; w++)
        code = MPI_Isend(NULL, 0, MPI_BYTE, w, TAG_ALL_CAME, MPI_COMM_WORLD, &r->request[w - 1]);
    if (code != MPI_SUCCESS)
        return failed("MPI_Isend", code, err);
    st = await(r->request, others, r->limit_ns, &all, err);
    return st != DP_OK || all ? st : dp_fail(err, DP_TIMEOUT, "the other ranks do not take a message");
}

static enum dp_status meet(void *self, uint64_t limit_ns, struct dp_error *err)
{
    struct dp_mpi_reducer *r = self;
    bool all = false;
    if (r->ranks == 1)
        return DP_OK;
    if (r->rank == 0)
        return meet_first(r, limit_ns, err);
    int code = MPI_Irecv(NULL, 0, MPI_BYTE, 0, TAG_ALL_CAME, MPI_COMM_WORLD, &r->request[0]);
    if (code == MPI_SUCCESS)
        code = MPI_Isend(NULL, 0, MPI_BYTE, 0, TAG_CAME, MPI_COMM_WORLD, &r->request[1]);
    if (code != MPI_SUCCESS)
        return failed("a message to rank 0", code, err);
    enum dp_status st = await(r->request, 2, limit_ns + AFTER_FIRST_NS, &all, err);
    return st != DP_OK || all
               ? st
               : dp_fail(err, DP_TIMEOUT,
                         "rank 0, which waits for the other ranks, gave no sign within %.1f s: it hangs, or "
                         "its machine is gone; look at its log and start the training again",
                         (double)(limit_ns + AFTER_FIRST_NS) / 1e9);
}

/* ---- sums */

static enum dp_status await_sum(struct dp_mpi_reducer *r, const char *what, int code, MPI_Request *request,
                                struct dp_error *err)
{
    bool all = false;
    if (code != MPI_SUCCESS)
        return failed(what, code, err);
    enum dp_status st = await(request, 1, r->limit_ns, &all, err);
    return st != DP_OK || all
               ? st
               : dp_fail(
                     err, DP_TIMEOUT,
                     "the sum over the ranks (%s) took longer than %.1f s: another rank hangs, its machine "
                     "is gone, or the network is too slow for it; look at their logs, start the training "
                     "again, or raise --timeout (training.timeout_ms)",
                     what, (double)r->limit_ns / 1e9);
}

static enum dp_status parts_reserve(struct dp_mpi_reducer *r, size_t floats, struct dp_error *err)
{
    if (floats <= r->parts_room)
        return DP_OK;
    free(r->parts);
    r->parts = malloc(floats * sizeof *r->parts);
    r->parts_room = r->parts ? floats : 0;
    return r->parts ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the sums of %zu floats", floats);
}

/* Of at most SUM_MAX values: each rank gets a part of all ranks' values, adds it, and gives all the sums of its part. */
static enum dp_status sum_some_in_order(struct dp_mpi_reducer *r, float *values, size_t n,
                                        struct dp_error *err)
{
    size_t most = (n + (size_t)r->ranks - 1) / (size_t)r->ranks;
    for (int w = 0; w < r->ranks; w++) {
        size_t from = most * (size_t)w < n ? most * (size_t)w : n, left = n - from;
        r->places[w] = (int)from;
        r->counts[w] = (int)(left < most ? left : most);
    }
    size_t own = (size_t)r->counts[r->rank];
    for (int w = 0; w < r->ranks; w++) {
        r->own_counts[w] = (int)own;
        r->own_places[w] = (int)(own * (size_t)w);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    enum dp_status st = parts_reserve(r, own * (size_t)r->ranks, err);
    if (st != DP_OK)
        return st;
    int code = MPI_Ialltoallv(values, r->counts, r->places, MPI_FLOAT, r->parts, r->own_counts, r->own_places,
                              MPI_FLOAT, MPI_COMM_WORLD, &request);
    st = await_sum(r, "MPI_Alltoall", code, &request, err);
    if (st != DP_OK)
        return st;
    for (int w = 1; w < r->ranks; w++)
        for (size_t i = 0; i < own; i++)
            r->parts[i] += r->parts[(size_t)w * own + i];
    if (own > 0)
        memcpy(values + r->places[r->rank], r->parts, own * sizeof *values);
    code = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, r->counts, r->places, MPI_FLOAT,
                           MPI_COMM_WORLD, &request);
    return await_sum(r, "MPI_Allgather", code, &request, err);
}

static enum dp_status reduce(struct dp_mpi_reducer *r, void *values, size_t n, MPI_Datatype type, MPI_Op by,
                             struct dp_error *err)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Iallreduce(MPI_IN_PLACE, values, (int)n, type, by, MPI_COMM_WORLD, &request);
    return await_sum(r, "MPI_Allreduce", code, &request, err);
}

static enum dp_status sum(void *self, float *values, size_t n, struct dp_error *err)
{
    struct dp_mpi_reducer *r = self;
    enum dp_status st = DP_OK;
    for (size_t at = 0; r->ranks > 1 && st == DP_OK && at < n; at += SUM_MAX) {
        size_t some = n - at < SUM_MAX ? n - at : SUM_MAX;
        st = r->sum == DP_MPI_SUM_IN_ORDER ? sum_some_in_order(r, values + at, some, err)
                                           : reduce(r, values + at, some, MPI_FLOAT, MPI_SUM, err);
    }
    return st;
}

static enum dp_status least(void *self, uint64_t *values, size_t n, struct dp_error *err)
{
    return reduce(self, values, n, MPI_UINT64_T, MPI_MIN, err);
}

/* ---- what each gives rank 0 */

static enum dp_status receive(int rank, struct dp_gathered *out, struct dp_error *err)
{
    MPI_Message message;
    MPI_Status status;
    int size = 0, code = MPI_Mprobe(rank, TAG_GIVEN, MPI_COMM_WORLD, &message, &status);
    if (code == MPI_SUCCESS)
        code = MPI_Get_count(&status, MPI_BYTE, &size);
    if (code != MPI_SUCCESS)
        return failed("MPI_Mprobe", code, err);
    *out = (struct dp_gathered){.bytes = malloc((size_t)size + 1), .size = (size_t)size};
    if (!out->bytes)
        return dp_fail(err, DP_NOMEM, "no memory for the stats of rank %d", rank);
    code = MPI_Mrecv(out->bytes, size, MPI_BYTE, &message, &status);
    return code == MPI_SUCCESS ? DP_OK : failed("MPI_Mrecv", code, err);
}

static enum dp_status gather(void *self, const void *bytes, size_t size, struct dp_gathered *all,
                             struct dp_error *err)
{
    struct dp_mpi_reducer *r = self;
    enum dp_status st = DP_OK;
    int code = MPI_SUCCESS;
    if (size > INT32_MAX)
        return dp_fail(err, DP_FULL, "the stats of rank %d are too large for one message", r->rank);
    if (!all) {
        dp_watchdog_begin(&r->watchdog, "rank 0 to take the stats", r->limit_ns);
        code = MPI_Send(bytes, (int)size, MPI_BYTE, 0, TAG_GIVEN, MPI_COMM_WORLD);
        dp_watchdog_end(&r->watchdog);
        return code == MPI_SUCCESS ? DP_OK : failed("MPI_Send", code, err);
    }
    all[0] = (struct dp_gathered){.bytes = malloc(size + 1), .size = size};
    if (!all[0].bytes)
        return dp_fail(err, DP_NOMEM, "no memory for the stats of rank 0");
    memcpy(all[0].bytes, bytes, size);
    dp_watchdog_begin(&r->watchdog, "the stats of the other ranks", r->limit_ns);
    for (int w = 1; st == DP_OK && w < r->ranks; w++)
        st = receive(w, &all[w], err);
    dp_watchdog_end(&r->watchdog);
    return st;
}

/* ---- the job */

static enum dp_status init(struct dp_mpi_reducer *r, int *argc, char ***argv, struct dp_error *err)
{
    int provided = MPI_THREAD_SINGLE;
    enum dp_status st = dp_watchdog_start(&r->watchdog, NULL, NULL, err);
    if (st != DP_OK)
        return st;
    r->watched = true;
    dp_watchdog_begin(&r->watchdog, "the other ranks to start (MPI_Init)", r->limit_ns);
    int code = MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    dp_watchdog_end(&r->watchdog);
    if (code != MPI_SUCCESS)
        return failed("MPI_Init", code, err);
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &r->ranks);
    size_t ranks = (size_t)r->ranks;
    r->request = calloc(2 * ranks, sizeof *r->request);
    r->counts = calloc(4 * ranks, sizeof *r->counts);
    if (!r->request || !r->counts)
        return dp_fail(err, DP_NOMEM, "no memory for the messages of %d ranks", r->ranks);
    r->places = r->counts + ranks;
    r->own_counts = r->places + ranks;
    r->own_places = r->own_counts + ranks;
    return provided >= MPI_THREAD_FUNNELED
               ? DP_OK
               : dp_fail(err, DP_UNSUPPORTED,
                         "this MPI allows no threads next to the one that calls it: use Open MPI as Debian "
                         "has it (openmpi-bin)");
}

enum dp_status dp_mpi_reducer_open(int *argc, char ***argv, struct dp_mpi_reducer **out,
                                   struct dp_reducer *reducer, struct dp_error *err)
{
    static const struct dp_reducer_ops ops = {.meet = meet, .sum = sum, .least = least, .gather = gather};
    struct dp_mpi_reducer *r = calloc(1, sizeof *r);
    *out = r;
    if (!r)
        return dp_fail(err, DP_NOMEM, "no memory to start MPI");
    r->limit_ns = START_MS * MS_NS;
    enum dp_status st = init(r, argc, argv, err);
    *reducer =
        (struct dp_reducer){.ops = &ops, .self = r, .rank = (uint32_t)r->rank, .ranks = (uint32_t)r->ranks};
    return st;
}

const char *dp_mpi_sum_name(enum dp_mpi_sum kind)
{
    return kind == DP_MPI_SUM_ALLREDUCE ? "MPI_Allreduce"
                                        : "MPI_Alltoall and MPI_Allgather, in order of rank";
}

void dp_mpi_reducer_set(struct dp_mpi_reducer *reducer, enum dp_mpi_sum kind, uint32_t timeout_ms)
{
    reducer->sum = kind;
    reducer->limit_ns = timeout_ms * MS_NS;
}

void dp_mpi_reducer_close(struct dp_mpi_reducer **reducer)
{
    struct dp_mpi_reducer *r = *reducer;
    *reducer = NULL;
    dp_watchdog_begin(&r->watchdog, "the other ranks to end (MPI_Finalize)", r->limit_ns);
    (void)MPI_Finalize();
    dp_watchdog_end(&r->watchdog);
    dp_watchdog_stop(&r->watchdog);
    free(r->request);
    free(r->counts);
    free(r->parts);
    free(r);
}

void dp_mpi_reducer_end_job(struct dp_mpi_reducer *reducer, int code)
{
    int begun = 0;
    (void)MPI_Initialized(&begun);
    if (reducer && reducer->watched)
        dp_watchdog_begin(&reducer->watchdog, "MPI_Abort to end the job", reducer->limit_ns);
    if (begun)
        (void)MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}
