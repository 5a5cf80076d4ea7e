/* checkpoint: has the first server make a checkpoint of a running cluster, once or at each interval.
 *     client -> ask, watch (common/client/checkpoint.h) -> (--every: wait) -> again */
#include "deploy/checkpoint/checkpoint_commands.h"
#include "deploy/cli/amounts.h"
#include "deploy/cli/options.h"
#include "deploy/cli/progress.h"
#include "deploy/run/folder.h"

#include "common/base/deadline.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/client/checkpoint.h"
#include "common/config/cluster_client.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/making.h"
#include "server/checkpoint/prune.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define LOOK_MS      50u
#define OPEN_MS      10000u
#define STOPPED_MS   1000u /* where it is not known that anybody serves */
#define WAIT_DEFAULT 10u
#define FAILURES_MAX 3u

static const struct dp_option options[] = {
    {"--cluster", "FILE", NULL, "cluster file that the servers were started with"},
    {"--dir", "RUN", NULL, "directory of a run ('downpour run --dir RUN'), instead of --cluster"},
    {"--to", "DIR", NULL,
     "directory for checkpoints; all servers must reach it under this name; it is made if missing; files "
     "that an earlier checkpoint in it has are not written again"},
    {"--every", "TIME", NULL,
     "go on making checkpoints, one each TIME (\"90s\", \"10min\", \"2h\"), until Ctrl-C; a failed one is "
     "reported, three failures in a row end the command"},
    {"--keep", "N", NULL,
     "after each checkpoint remove all but the last N complete ones of this cluster in DIR; where the disk "
     "is full, before it is tried again; default: all are kept"},
    {"--prune", "N", NULL,
     "make none; remove all before the last N complete ones in DIR, whose bytes are read: of this cluster "
     "with --cluster or --dir, else of each; servers are not needed"},
    {"--full", NULL, NULL, "write every file, also those that an earlier checkpoint has"},
    {"--rate", "BYTES", NULL,
     "read at most so many bytes a second on each server (\"100MiB\"); default: no limit"},
    {"--wait", "TIME", NULL,
     "how long to wait for pushes that only some shards have, at most 1h; default 10s. Then the checkpoint "
     "fails and "
     "names the worker, which completes its push when it is started again; pushes of other clients are "
     "listed, and a restored cluster refuses them"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "checkpoint",
    .usage = "--cluster FILE | --dir RUN --to DIR [FLAGS]; --to DIR --prune N",
    .summary = "Makes a checkpoint of a running cluster in DIR/checkpoint-N: all rows with optimizer state, "
               "which pushes they have,\nthe register and the cluster file, all as of one moment. Training "
               "goes on. Servers with durability none\nhave no journal, and refuse it. Ctrl-C and "
               "failures leave no checkpoint. Then: downpour inspect, restore.",
    .options = options,
    .count = OPTIONS,
};

struct checkpoint_asked {
    const char *dir;                                 /* --dir; or NULL */
    char conf[DP_PATH_MAX + 1], to[DP_PATH_MAX + 1]; /* the cluster file, absolute; "": none */
    struct dp_cluster *cluster;
    uint64_t every_s, wait_s, keep, prune, rate;
    bool full;
};

static volatile sig_atomic_t stop_signal;

static void stop(int signal)
{
    stop_signal = signal;
}

static bool is_interrupted(void *context)
{
    (void)context;
    return stop_signal != 0;
}

static enum dp_status look(void *context, const struct dp_checkpoint_state *state, struct dp_error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    struct dp_cli_line *line = context;
    char text[160];
    if (line->moving) {
        dp_amount_progress(state->why, state->done_bytes, state->all_bytes, &line->pace, text, sizeof text);
        dp_cli_line_show(line, text, dp_now_ms());
    }
    if (!stop_signal)
        (void)nanosleep(&pause, NULL);
    return stop_signal ? dp_fail(err, DP_STOPPING, "interrupted: the checkpoint is given up") : DP_OK;
}

static void tell(const struct checkpoint_asked *a, const struct dp_checkpoint_made *made)
{
    char all[32], new[32], at[64] = "";
    if (made->pruned > 0)
        fprintf(stderr,
                "downpour: checkpoint: the disk was full: %" PRIu64 " earlier ones were removed (%s)\n",
                made->pruned, dp_amount_bytes(made->pruned_bytes, all));
    if (made->run > 0)
        (void)snprintf(at, sizeof at, " of run %" PRIu64 ", epoch %" PRIu64, made->run, made->epoch + 1);
    printf("checkpoint %" PRIu64 "%s: %s, %s new, in %.1f s (cut in %.2f s)  %s/checkpoint-%06" PRIu64 "\n",
           made->number, at, dp_amount_bytes(made->bytes, all), dp_amount_bytes(made->bytes_new, new),
           (double)made->took_ms / 1000, (double)made->cut_ms / 1000, a->to, made->number);
    if (made->partial > 0)
        printf("%" PRIu64
               " pushes are on some shards only, as their clients did not complete them: a restored cluster "
               "refuses them when they are sent again\n",
               made->partial);
    (void)fflush(stdout);
}

/* A run's directory without a lock holder: only servers that were started manually may use it. */
static bool looks_stopped(const struct checkpoint_asked *a)
{
    struct dp_folder folder;
    struct dp_error ignored = {0};
    if (!a->dir || dp_folder_open_to_read(a->dir, &folder, &ignored) != DP_OK)
        return false;
    dp_folder_close(&folder);
    return true;
}

static enum dp_status open_client(const struct checkpoint_asked *a, struct dp_client **out,
                                  struct dp_error *err)
{
    char dir[DP_PATH_QUOTED];
    bool stopped = looks_stopped(a);
    const struct dp_client_options client = {.name = "downpour checkpoint",
                                             .open_timeout_ms = stopped ? STOPPED_MS : OPEN_MS,
                                             .gives_up = is_interrupted};
    enum dp_status st = dp_cluster_client(a->cluster, &client, out, err);
    if (st != DP_OK && stop_signal)
        return dp_fail(err, DP_STOPPING, "interrupted: no checkpoint was begun");
    if (st == DP_OK || !stopped)
        return st;
    (void)dp_path_quote(a->dir, dir);
    return dp_fail(err, DP_UNAVAILABLE,
                   "run %" PRIu32
                   " in %s is not running, and its servers do not answer; a checkpoint is taken of "
                   "running servers. The weights of a run that has ended: 'downpour export --from %s'; its "
                   "directory can be copied as it is; checkpoints can be taken again while it trains on",
                   a->cluster->training.run, dir, dir);
}

static enum dp_status make_one(const struct checkpoint_asked *a, struct dp_error *err)
{
    struct dp_client *client = NULL;
    struct dp_checkpoint_made made;
    struct dp_cli_line line;
    enum dp_status st = open_client(a, &client, err);
    for (uint32_t i = 0; st == DP_OK && i < dp_cluster_shards(a->cluster); i++)
        st = dp_folder_check_live(a->conf, a->cluster, i,
                                  err); /* a copied directory names another run's servers */
    if (st != DP_OK) {
        dp_client_close(&client);
        /* A limit of this process, and not a disk to make room on. */
        return st == DP_FULL ? dp_wrap(err, DP_UNAVAILABLE, "no checkpoint was begun") : st;
    }
    struct dp_checkpoint_ask ask = {
        .full = a->full, .rate = a->rate, .wait_ms = (uint32_t)a->wait_s * 1000, .keep = (uint32_t)a->keep};
    (void)snprintf(ask.directory, sizeof ask.directory, "%s", a->to);
    (void)snprintf(ask.file, sizeof ask.file, "%s", a->conf);
    const struct dp_checkpoint_watch watch = {look, &line};
    dp_cli_line_init(&line, stderr);
    st = dp_client_checkpoint_make(client, &ask, &watch, &made, err);
    dp_cli_line_clear(&line);
    dp_client_close(&client);
    if (st == DP_OK)
        tell(a, &made);
    return st;
}

static void wait_until(uint64_t at_ms)
{
    for (uint64_t now = dp_now_ms(); now < at_ms && !stop_signal; now = dp_now_ms()) {
        uint64_t left = at_ms - now;
        const struct timespec pause = {(time_t)(left / 1000), (long)(left % 1000) * 1000000};
        (void)nanosleep(&pause, NULL); /* a signal ends it */
    }
}

/* behind: the text after it. */
static void tell_failure(const struct checkpoint_asked *a, struct dp_error *err, const char *behind)
{
    char to[DP_PATH_QUOTED];
    dp_text_clean(err->text);
    fprintf(stderr, "downpour: checkpoint: %s%s\n", err->text, behind);
    if (err->status == DP_FULL)
        fprintf(stderr,
                "downpour: checkpoint: to remove earlier ones: downpour checkpoint --to %s --prune N (N: how "
                "many "
                "stay)\n",
                dp_path_quote(a->to, to));
}

static enum dp_status make_all(const struct checkpoint_asked *a, struct dp_error *err)
{
    char behind[64];
    uint32_t failures = 0;
    for (;;) {
        uint64_t begun_ms = dp_now_ms();
        enum dp_status st = make_one(a, err);
        if (a->every_s == 0)
            return st;
        if (stop_signal) /* between two: it ends well */
            return DP_OK;
        failures = st == DP_OK ? 0 : failures + 1;
        if (failures == FAILURES_MAX)
            return dp_wrap(err, st, "%u checkpoints in a row failed", FAILURES_MAX);
        (void)snprintf(behind, sizeof behind, "; the next one is tried in %" PRIu64 " s", a->every_s);
        if (st != DP_OK)
            tell_failure(a, err, behind);
        wait_until(begun_ms + a->every_s * 1000);
        if (stop_signal)
            return DP_OK;
    }
}

static enum dp_status take_numbers(const char *const *values, struct checkpoint_asked *a,
                                   struct dp_error *err)
{
    const char *every = dp_options_value(&command, values, "--every"),
               *wait = dp_options_value(&command, values, "--wait"),
               *rate = dp_options_value(&command, values, "--rate");
    enum dp_status st = DP_OK;
    a->wait_s = WAIT_DEFAULT;
    if (every)
        st = dp_amount_time(every, "--every", &a->every_s, err);
    if (st == DP_OK && wait)
        st = dp_amount_time(wait, "--wait", &a->wait_s, err);
    if (st == DP_OK && a->wait_s * 1000 > DP_CHECKPOINT_WAIT_MS_MAX)
        st = dp_fail(err, DP_ARGUMENT, "--wait %s: at most 1h", wait);
    if (st == DP_OK)
        st = dp_options_u64(&command, values, "--keep", 1, 1000000, 0, &a->keep, err);
    if (st == DP_OK)
        st = dp_options_u64(&command, values, "--prune", 1, 1000000, 0, &a->prune, err);
    if (st == DP_OK && rate)
        st = dp_parse_bytes(rate, "--rate", &a->rate, err);
    if (st == DP_OK && rate && a->rate == 0)
        st = dp_fail(err, DP_ARGUMENT, "--rate 0 would never end; without --rate there is no limit");
    return st;
}

/* Of a path that need not exist, through links too. */
static bool lies_in(const char *path, const char *directory)
{
    char part[DP_PATH_MAX + 1], *slash = part;
    (void)snprintf(part, sizeof part, "%s", path);
    while (slash && !dp_path_same(part, directory)) {
        slash = strrchr(part, '/');
        if (slash)
            *slash = '\0';
    }
    return slash != NULL;
}

/* Opening, replacing or removing a run's files must not meet checkpoints there. */
static enum dp_status check_outside(const struct checkpoint_asked *a, struct dp_error *err)
{
    static const char *const parts[] = {"runs", "store", "log", "cache"};
    bool inside = a->dir && dp_path_same(a->to, a->dir);
    for (size_t i = 0; a->dir && i < sizeof parts / sizeof parts[0]; i++) {
        char part[DP_PATH_MAX + 16];
        (void)snprintf(part, sizeof part, "%s/%s", a->dir, parts[i]);
        inside |= lies_in(a->to, part);
    }
    return inside ? dp_fail(err, DP_ARGUMENT,
                            "--to: %.300s is the run's own (its stores, logs and settings lie there): give "
                            "checkpoints a directory next to it, best on another disk",
                            a->to)
                  : DP_OK;
}

static enum dp_status take_flags(const char *const *values, struct checkpoint_asked *a, struct dp_error *err)
{
    const char *file = dp_options_value(&command, values, "--cluster"),
               *dir = dp_options_value(&command, values, "--dir"),
               *to = dp_options_value(&command, values, "--to");
    bool prunes = dp_options_value(&command, values, "--prune") != NULL;
    if ((file && dir) || (!file && !dir && !prunes))
        return dp_fail(
            err, DP_ARGUMENT,
            "give either --cluster FILE or --dir RUN; 'downpour checkpoint --help' lists all flags");
    if (prunes &&
        (dp_options_value(&command, values, "--keep") || dp_options_value(&command, values, "--every")))
        return dp_fail(err, DP_ARGUMENT, "--prune makes no checkpoint: omit --keep and --every");
    if (!to)
        return dp_fail(err, DP_ARGUMENT, "--to DIR is required: the directory for checkpoints");
    struct dp_folder folder = {.lock = -1};
    if (dir && dp_folder_find_running(dir, &folder, err) != DP_OK)
        return err->status;
    memcpy(a->conf, folder.conf, sizeof a->conf);
    a->dir = dir;
    a->full = dp_options_value(&command, values, "--full") != NULL;
    enum dp_status st = take_numbers(values, a, err);
    if (st == DP_OK && file)
        st = dp_path_absolute(file, a->conf, err);
    if (st == DP_OK)
        st = dp_path_absolute(to, a->to, err);
    if (st == DP_OK)
        st = check_outside(a, err);
    if (st == DP_OK && a->conf[0])
        st = dp_cluster_read(a->conf, &a->cluster, err);
    return st;
}

/* A directory without a checkpoint may be anything: not even the lock's file is made there. */
static enum dp_status check_there(const char *directory, struct dp_error *err)
{
    struct dp_checkpoint_list list;
    enum dp_status st = dp_checkpoint_list_read(directory, &list, err);
    if (st == DP_OK && list.count == 0)
        st = dp_fail(err, DP_NOT_FOUND, "%s has no checkpoint", directory);
    if (st == DP_OK)
        dp_checkpoint_list_clear(&list);
    return st;
}

/* --prune. */
static enum dp_status prune_alone(const char *directory, uint64_t cluster, uint32_t keep,
                                  struct dp_error *err)
{
    struct dp_prune pruned = {0};
    struct dp_pace pace = dp_pace_real();
    int lock = -1;
    char bytes[32];
    enum dp_status st = check_there(directory, err);
    if (st == DP_OK)
        st = dp_checkpoint_lock(directory, &lock, err);
    if (st == DP_OK) /* what a killed server left takes room, too */
        st = dp_checkpoint_sweep(directory, 0, err);
    if (st == DP_OK)
        st = dp_checkpoint_prune(directory, cluster, keep, &pace, &pruned, err);
    dp_checkpoint_unlock(&lock);
    if (st == DP_OK)
        printf("%" PRIu32 " checkpoint%s removed, with %" PRIu64 " file%s (%s) that no other one has\n",
               pruned.checkpoints, pruned.checkpoints == 1 ? "" : "s", pruned.files,
               pruned.files == 1 ? "" : "s", dp_amount_bytes(pruned.bytes, bytes));
    if (st == DP_OK && pruned.damaged > 0)
        printf("damaged, so kept and not counted: %" PRIu32 " (the first is checkpoint %" PRIu32
               "; 'downpour inspect %s/checkpoint-%06" PRIu32 " --verify' names the damage)\n",
               pruned.damaged, pruned.first_damaged, directory, pruned.first_damaged);
    return st;
}

int dp_deploy_checkpoint(int argc, char *const *argv)
{
    const char *values[OPTIONS];
    struct dp_error err = {0};
    struct checkpoint_asked a = {0};
    bool help;
    enum dp_status st = dp_options_parse(&command, argc, argv, values, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    if (st == DP_OK)
        st = take_flags(values, &a, &err);
    /* Not restarted: a wait ends. Once: a second one ends this process. */
    const struct sigaction act = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    if (st == DP_OK)
        st = a.prune > 0 ? prune_alone(a.to, a.cluster ? a.cluster->id : 0, (uint32_t)a.prune, &err)
                         : make_all(&a, &err);
    dp_cluster_free(&a.cluster);
    if (st == DP_OK)
        return 0;
    tell_failure(&a, &err, "");
    return stop_signal ? 128 + stop_signal : 2;
}
