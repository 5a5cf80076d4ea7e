/* downpour-worker: trains one share of a run, or writes scores.
 * Exit      0; 2 with one line that says cause and remedy; 128 + the signal's number after a signal (143 for
 *           SIGTERM), when the step under way is finished and its pushes are answered.                   */
#include "common/base/log.h"
#include "common/base/parse.h"
#include "worker/consent.h"
#include "worker/predict.h"
#include "worker/top.h"
#include "worker/train.h"

#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: downpour-worker --cluster FILE --worker N [--resume] [--device NAME] [--precision KIND]\n"
    "       downpour-worker --cluster FILE --predict DATA [--labels FILE] --out FILE\n"
    "       downpour-worker --cluster FILE --top N --users FILE [--with-seen] --out FILE\n"
    "\n"
    "  --cluster FILE   the cluster file that servers and workers share\n"
    "  --worker N       train as worker N: 0 .. training.workers - 1\n"
    "  --resume         it may have been killed after its last push: a training that is all done is no\n"
    "                   error then\n"
    "  --device NAME    cpu, cuda:N, cuda:each or auto, in place of the cluster file's training.device\n"
    "  --precision KIND f32, tf32 or bf16, in place of training.precision\n"
    "  --predict DATA   write the trained model's score of each example of DATA, a line each\n"
    "  --labels FILE    labels of an idx file, where its name does not tell them\n"
    "  --top N          write the N best items of each user, lines \"USER ITEM SCORE\"\n"
    "  --users FILE     with --top: a user in each line\n"
    "  --with-seen      with --top: also items that the user met in the training file\n"
    "  --out FILE       where the scores go\n";

struct flags {
    const char *top, *users;
    const char *cluster, *worker, *predict, *labels, *out, *device, *precision;
    bool help, resume, with_seen, ledger; /* ledger: for tests (ledger.h) */
};

/* The one thing that a signal's handler can reach. */
static atomic_int stop_signal;

static void on_signal(int number)
{
    atomic_store(&stop_signal, number);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
}

static enum dp_status parse_flags(int argc, char **argv, struct flags *out, struct dp_error *err)
{
    static const struct option options[] = {
        {"cluster", required_argument, NULL, 'c'}, {"worker", required_argument, NULL, 'w'},
        {"predict", required_argument, NULL, 'p'}, {"labels", required_argument, NULL, 'l'},
        {"out", required_argument, NULL, 'o'},     {"top", required_argument, NULL, 't'},
        {"users", required_argument, NULL, 'u'},   {"with-seen", no_argument, NULL, 'W'},
        {"device", required_argument, NULL, 'd'},  {"precision", required_argument, NULL, 'P'},
        {"help", no_argument, NULL, 'h'},          {"resume", no_argument, NULL, 'r'},
        {"ledger", no_argument, NULL, 'L'},        {NULL, 0, NULL, 0},
    };
    *out = (struct flags){0};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            out->cluster = optarg;
            break;
        case 'w':
            out->worker = optarg;
            break;
        case 'p':
            out->predict = optarg;
            break;
        case 'l':
            out->labels = optarg;
            break;
        case 'o':
            out->out = optarg;
            break;
        case 'd':
            out->device = optarg;
            break;
        case 'P':
            out->precision = optarg;
            break;
        case 't':
            out->top = optarg;
            break;
        case 'u':
            out->users = optarg;
            break;
        case 'W':
            out->with_seen = true;
            break;
        case 'r':
            out->resume = true;
            break;
        case 'L':
            out->ledger = true;
            break;
        case 'h':
            out->help = true;
            return DP_OK;
        case ':':
            return dp_fail(err, DP_ARGUMENT, "%s wants a value, see --help", argv[optind - 1]);
        default:
            return dp_fail(err, DP_ARGUMENT, "unknown flag %s, see --help", argv[optind - 1]);
        }
    }
    if (optind < argc)
        return dp_fail(err, DP_ARGUMENT, "\"%s\" is no flag, see --help", argv[optind]);
    if (!out->cluster)
        return dp_fail(err, DP_ARGUMENT, "--cluster FILE is missing, see --help");
    if ((out->worker != NULL) + (out->predict != NULL) + (out->top != NULL) != 1)
        return dp_fail(
            err, DP_ARGUMENT,
            "give --worker N to train, --predict DATA to write scores, or --top N to write the best items; "
            "see --help");
    if (!out->worker && !out->out)
        return dp_fail(err, DP_ARGUMENT, "%s wants --out FILE too", out->predict ? "--predict" : "--top");
    if ((out->top != NULL) != (out->users != NULL) || (out->with_seen && !out->top))
        return dp_fail(err, DP_ARGUMENT, "--top N and --users FILE go together, and --with-seen with them");
    if (out->worker && (out->labels || out->out))
        return dp_fail(err, DP_ARGUMENT,
                       "--labels and --out go with --predict; a training's are in the cluster file");
    return DP_OK;
}

/* This machine's own: others that read the file may have another device. */
static enum dp_status set_device(struct dp_cluster *cluster, const struct flags *flags, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (flags->device)
        st = dp_cluster_set(cluster, "training.device", flags->device, "--device", err);
    if (st == DP_OK && flags->precision)
        st = dp_cluster_set(cluster, "training.precision", flags->precision, "--precision", err);
    return st == DP_OK ? dp_cluster_check(cluster, err) : st;
}

static enum dp_status train(const struct dp_cluster *cluster, const struct flags *flags, struct dp_error *err)
{
    uint64_t worker;
    enum dp_status st =
        dp_parse_u64(flags->worker, 0, cluster->training.workers - 1, "--worker", &worker, err);
    if (st != DP_OK)
        return st;
    if (!cluster->data.train[0])
        return dp_fail(err, DP_ARGUMENT, "the cluster file names no data.train to train on");
    char name[32];
    (void)snprintf(name, sizeof name, "worker %" PRIu64, worker);
    dp_log_start(name, DP_LOG_INFO);
    struct dp_job job;
    st = dp_job_open(cluster, (uint32_t)worker, name, &stop_signal, &job, err);
    if (st != DP_OK)
        return st;
    job.resumes = flags->resume;
    job.counts = flags->ledger;
    st = dp_job_tables(&job, false, err);
    if (st == DP_OK) {
        /* Until here a signal ends the process at once: nothing was pushed. */
        catch_signals();
        st = dp_train(&job, err);
    }
    dp_job_close(&job);
    return st;
}

static enum dp_status predict(const struct dp_cluster *cluster, const struct flags *flags,
                              struct dp_error *err)
{
    uint64_t count = 0;
    enum dp_status st = flags->top ? dp_parse_u64(flags->top, 1, 100000, "--top", &count, err) : DP_OK;
    if (st != DP_OK)
        return st;
    const struct dp_top_options top = {
        .count = (uint32_t)count, .users = flags->users, .with_seen = flags->with_seen, .out = flags->out};
    dp_log_start("predict", DP_LOG_INFO);
    struct dp_job job;
    st = dp_job_open(cluster, 0, "predict", &stop_signal, &job, err);
    if (st != DP_OK)
        return st;
    st = dp_job_tables(&job, true, err);
    catch_signals();
    if (st == DP_OK)
        st = dp_consent_scores(&job, err);
    if (st == DP_OK)
        st = flags->top ? dp_top(&job, &top, err)
                        : dp_predict(&job, flags->predict, flags->labels, flags->out, err);
    dp_job_close(&job);
    return st;
}

int main(int argc, char **argv)
{
    struct dp_error err = {0};
    struct flags flags;
    struct dp_cluster *cluster = NULL;
    /* Frames of a few hundred KB come and go with each step: kept in the heap, not mapped, zeroed and unmapped each
     * time. */
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
    enum dp_status st = parse_flags(argc, argv, &flags, &err);
    if (st == DP_OK && flags.help)
        return fputs(usage, stdout) < 0 ? 2 : 0;
    if (st == DP_OK)
        st = dp_cluster_read(flags.cluster, &cluster, &err);
    if (st == DP_OK)
        st = set_device(cluster, &flags, &err);
    if (st == DP_OK)
        st = flags.worker ? train(cluster, &flags, &err) : predict(cluster, &flags, &err);
    dp_cluster_free(&cluster);
    if (st == DP_OK)
        return 0;
    int signal_number = atomic_load(&stop_signal);
    (void)fprintf(stderr, "downpour-worker: %s\n", err.text[0] ? err.text : dp_status_text((int)st));
    return st == DP_STOPPING && signal_number ? 128 + signal_number : 2;
}
