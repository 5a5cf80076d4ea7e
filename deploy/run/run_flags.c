#include "deploy/run/run_flags.h"

#include "common/model/mode.h"
#include "common/model/table.h"
#include "worker/compute/models/model.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct dp_option options[] = {
    DP_OPTION_HEADING("Model and data"),
    {"--model", "MODEL",
     "logistic, fm:8, mlp:64-64-10, mf:16, neumf:16-64-32-16, wide-deep:16-256-128, deepfm:16-256-128, "
     "dlrm:64, skipgram:64, lstm:16-32-64 (required); 'downpour run --help models' explains the numbers",
     "model", NULL},
    {"--train", "FILE",
     "training data (required): libsvm text, MNIST idx images, pairs 'user item', lists 'user item item', "
     "Criteo's logs, CSV, text; plain, .gz, .zst, .xz, .bz2 or .zip; - for standard input",
     "data.train", NULL},
    {"--test", "FILE", "test data, evaluated after each epoch while all workers rest; default: none",
     "data.test", NULL},
    {"--train-labels", "FILE", "labels of idx images; default: found by the name of the images",
     "data.train_labels", NULL},
    {"--test-labels", "FILE", "labels of --test", "data.test_labels", NULL},
    {"--test-negatives", "FILE",
     "pairs: file of lines '(user,item) item item ...': the items among which each pair of --test is ranked",
     "data.test_negatives", NULL},
    {"--validation", "FILE",
     "validation data, evaluated after each epoch for early stopping; --test is then evaluated once, at the "
     "end",
     "data.validation", NULL},
    {"--validation-share", "X", "hold out this share of --train for validation, 0 .. 0.9",
     "data.validation_share", NULL},
    {"--validation-labels", "FILE", "labels of --validation", "data.validation_labels", NULL},
    {"--validation-negatives", "FILE", "as --test-negatives, for --validation", "data.validation_negatives",
     NULL},
    {"--format", "NAME",
     "format of the data files; default auto: detected from the model and the first bytes", "data.format",
     NULL},
    {"--window", "N", "text for skipgram: greatest distance of two words that form a pair; default 5",
     "data.window", NULL},
    {"--label", "NAME", "CSV: name of the label's column", "data.label", NULL},
    {"--categories", "NAMES",
     "CSV: columns that are not numbers, a,b,...; default: detected from the first 1,000 lines",
     "data.categories", NULL},
    {"--hash-bits", "N", "CSV, Criteo: hash categories to this many bits; default 63", "data.hash_bits",
     NULL},
    {"--holdout", "leave-one-out|SHARE",
     "pairs: hold out one item of each user, or this share of each user's items, as the test set; --seed "
     "chooses them",
     "data.holdout", NULL},
    {"--holdout-negatives", "N",
     "leave-one-out: also rank each item among this many sampled items; default 99", "data.holdout_negatives",
     NULL},
    {"--top-k", "K", "pairs: report recall@K and NDCG@K among all items; default 20", "training.top_k", NULL},
    {"--negatives", "N", "pairs and text: items (words) sampled for each pair; default 4", "data.negatives",
     NULL},
    {"--cache", "DIR",
     "directory for decoded data files, which the next start reuses; default DIR/cache of --dir",
     "data.cache", NULL},
    {"--index-base", "0|1", "libsvm text: number of the first feature; default 1", "data.index_base", NULL},
    {"--label-base", "N",
     "number of the first class; default 0, or 1 if all labels are 1 .. number of classes", "data.label_base",
     NULL},
    {"--scale", "X", "multiply each value by X; default 1, for idx images 1/255", "data.scale", NULL},
    {"--normalize", NULL, "scale each example to Euclidean norm 1", "data.normalize", "true"},
    {"--standardize", "yes|no",
     "CSV: replace numbers by (x - mean) / deviation of the column in the training file; default yes",
     "data.standardize", NULL},
    {"--sample-every", "TIME",
     "sample the weights during the training, every TIME (200ms) and 16 times an epoch, and score the "
     "samples afterwards, so that no worker stops to evaluate. DIR/samples.json has the metrics over time, "
     "on --score, else on --test or --holdout (which is then not evaluated after each epoch)",
     NULL, NULL},
    {"--score", "FILE|validation",
     "with --sample-every: the data for scoring the samples, like --test; or the validation set", NULL, NULL},
    {"--score-labels", "FILE", "labels of --score", NULL, NULL},
    {"--score-negatives", "FILE", "as --test-negatives, for --score", NULL, NULL},
    DP_OPTION_HEADING("Training"),
    {"--epochs", "N",
     "passes over the training data; default 0: 1 to 100, chosen from the model and the size of the data",
     "training.epochs", NULL},
    {"--stop-at", "METRIC:VALUE",
     "stop after the epoch whose validation (or test) metric reaches VALUE: loss, logloss, rmse, accuracy, "
     "auc, hr@10, ndcg@10, recall@K, ndcg@K; for example auc:0.8",
     "training.stop_at", NULL},
    {"--patience", "N", "stop after N epochs without a better metric; default 0: never", "training.patience",
     NULL},
    {"--patience-metric", "METRIC", "metric for --patience; default: that of --stop-at, else the loss",
     "training.patience_metric", NULL},
    {"--keep", "WHICH",
     "weights in the store at the end: of the best or the last epoch; default best with a validation set, "
     "--stop-at or --patience, else last, and last without a journal (--durability none)",
     "training.keep", NULL},
    {"--batch", "N",
     "examples per minibatch; default 0: 128, or fewer (at least 4) for less than 4,096 examples",
     "training.batch", NULL},
    {"--rate", "X", "learning rate; default 0.001", "training.rate", NULL},
    {"--optimizer", "NAME", DP_OPTIMIZER_NAMES "; default adam", "training.optimizer.kind", NULL},
    {"--l2", "X", "L2 regularization (all optimizers); default 0", "training.optimizer.l2", NULL},
    {"--l1", "X", "L1 regularization (ftrl); default 0", "training.optimizer.l1", NULL},
    {"--decay-weight", "X",
     "decoupled weight decay, of optimizers that have it; default 0, with --optimizer adamw 0.01",
     "training.optimizer.decay", NULL},
    {"--momentum", "X", "momentum of sgd; default 0, with --optimizer momentum 0.9",
     "training.optimizer.momentum", NULL},
    {"--beta1", "X", "beta1, of optimizers that have it; default 0.9", "training.optimizer.beta1", NULL},
    {"--beta2", "X", "beta2, of optimizers that have it; adam's default 0.999", "training.optimizer.beta2",
     NULL},
    {"--epsilon", "X", "epsilon, of optimizers that have it; default of adam 1e-8, of adagrad 1e-10",
     "training.optimizer.epsilon", NULL},
    {"--warmup", "N", "minibatches (of all workers) over which the rate rises to its value; default 0",
     "training.warmup_steps", NULL},
    {"--decay", "KIND", "decay of the rate: none, linear, cosine or inverse-sqrt; default none",
     "training.decay", NULL},
    {"--rate-end", "X", "final rate of linear and cosine decay; default 0", "training.rate_end", NULL},
    {"--seed", "N", "seed of initial weights and shuffling; default 1", "training.seed", NULL},
    {"--fetch-every", "N", "pull the weights every N minibatches; default 1", "training.fetch_every", NULL},
    {"--push-every", "N", "push the gradients of N minibatches together; default 1", "training.push_every",
     NULL},
    {"--accumulate", "N", "push the sum of the gradients of N minibatches on the same weights; default 1",
     "training.accumulate", NULL},
    {"--consistency", "MODE", "how far workers may be apart: " DP_MODE_HELP, "training.consistency", NULL},
    {"--work", "fixed|leased",
     "minibatches of a worker: a fixed share, or leases from a common list, so that fast workers do more and "
     "others do the part of a dead one (async only); default fixed",
     "training.work", NULL},
    {"--rate-by-staleness", NULL,
     "divide the learning rate of a push by the number of pushes that a shard applied since its pull, if "
     "over "
     "1; not with sync",
     "training.rate_by_staleness", "true"},
    {"--no-overlap", NULL, "do not read and pull the next minibatch while the current one is computed",
     "training.overlap", "false"},
    {"--bf16", NULL, "send values as bf16: half the bytes, 8 bits of precision", "training.bf16_values",
     "true"},
    DP_OPTION_HEADING("Resources"),
    {"--servers", "N", "server processes; default 1", NULL, NULL},
    {"--workers", "N", "worker processes; default 1", "training.workers", NULL},
    {"--shards", "N", "shards (threads) of each server; default 1", NULL, NULL},
    {"--threads", "N",
     "threads of each worker that share its weights without locks (Hogwild!), for sparse models on the CPU; "
     "16 minibatches (or --fetch-every) are then pulled and pushed together, for which optimizers other than "
     "sgd take one step; default 1",
     "training.threads", NULL},
    {"--blas-threads", "N", "threads for the matrix products of each worker; default 1",
     "training.blas_threads", NULL},
    {"--device", "NAME",
     "where workers compute: cpu, cuda:N (that GPU), cuda:each (worker number modulo number of GPUs) or auto "
     "(the first GPU if there is one); default cpu",
     "training.device", NULL},
    {"--precision", "KIND", "precision of a GPU's matrix products: f32, tf32 or bf16; default f32",
     "training.precision", NULL},
    {"--durability", "KIND",
     "what an acknowledged push survives: machine (power loss), process (kill -9) or none; default machine",
     "durability", NULL},
    {"--journal-bytes", "BYTES", "disk space for the journal of each shard; default 1GiB", "journal_bytes",
     NULL},
    {"--cache-bytes", "BYTES", "memory for the rows of each shard (\"512MiB\"); default 1GiB", "cache_bytes",
     NULL},
    {"--port", "N", "control port of the first server, the next ports follow; default: free ports", NULL,
     NULL},
    {"--timeout", "SECONDS", "longest wait for a server without progress, 1 .. 600; default 30", NULL, NULL},
    {"--worker-timeout", "SECONDS",
     "with ssp and sync: remove a worker after so many seconds of silence (longer than a restart takes). It "
     "may rejoin; its missed minibatches are not trained. Worker 0 is never removed. Default 0: the others "
     "wait for it",
     "training.worker_timeout", NULL},
    {"--restarts", "N",
     "restart processes that crash or are killed up to N times within 10 minutes, 0 .. 10000; default 20. A "
     "process that crashes twice in the same way is not restarted",
     NULL, NULL},
    DP_OPTION_HEADING("Injected delays, to compare modes under stragglers"),
    {"--pace", "TIME",
     "least time of a minibatch (20ms), so that two processors carry four workers. The wait counts as "
     "computing and changes no weights of a sync run. A minibatch that is computed in c takes max(c, TIME x "
     "draw) x FACTOR + TIME of --straggler; default 0: none",
     "training.pace", NULL},
    {"--jitter", "exp|uniform",
     "multiply --pace by a draw of mean 1 for each minibatch: with --pace 20ms exp is the exponential "
     "distribution of "
     "mean 20 ms, uniform is 0 .. 40 ms; drawn from seed, epoch and number of the minibatch, so equal in all "
     "modes; default none",
     "training.jitter", NULL},
    {"--straggler", "W:10x|W:TIME",
     "worker W's minibatches take 10 times as long (give --pace, which it multiplies), or TIME longer "
     "(3:50ms); several with commas between; default none",
     "training.straggler", NULL},
    DP_OPTION_HEADING("Files"),
    {"--dir", "DIR",
     "directory for cluster file, logs, store and report; default ./downpour-run. A second run there "
     "continues from its weights. Data, model and settings must match; a different --workers, --threads, "
     "--work or --consistency is allowed and reported",
     NULL, NULL},
    {"--from", "CHECKPOINT",
     "continue from a checkpoint (DIR/checkpoint-000001, or DIR: its last one) in --dir, which has no run "
     "yet, on any --servers and --shards. Other flags as with --resume; with --continue also other settings. "
     "--train gives the present place of the training file",
     NULL, NULL},
    {"--resume", NULL,
     "finish the run in DIR that was stopped, was killed or failed, from exactly where it was. No other flag "
     "is needed; flags that would change the training are refused",
     NULL, NULL},
    {"--continue", NULL,
     "train on from the weights in DIR, even if that run is not finished. Other flags change its data and "
     "settings (the model must fit); settings without a flag stay",
     NULL, NULL},
    {"--fresh", NULL,
     "start with new weights in DIR. Files of earlier runs, with their store, are removed once this run "
     "trains (decoded data in DIR/cache stays). Without --model, --train and --cluster it takes the settings "
     "of the run there, which other flags change",
     NULL, NULL},
    {"--report", "FILE",
     "JSON report, rewritten after each epoch; - for standard output, at the end; default DIR/report.json",
     NULL, NULL},
    {"--cluster", "FILE",
     "cluster file with settings, which flags override; the number of servers and shards is taken from it, "
     "its addresses are not",
     NULL, NULL},
    DP_OPTION_HEADING("Rarely needed: when a store is lost"),
    {"--replace-store", NULL,
     "continue although a store in DIR is lost (its shard starts empty), older or another one. The losses "
     "are listed first; there is no way back",
     NULL, NULL},
    {"--discard", NULL,
     "with --resume: stores without a journal (--durability none) that were not closed cleanly start empty, "
     "and their minibatches are trained again",
     NULL, NULL},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_option_alias aliases[] = {
    {"--lr", "--rate"},
    {"--learning-rate", "--rate"},
    {"--batch-size", "--batch"},
    {"--weight-decay", "--decay-weight"},
    {NULL, NULL},
};

static_assert(OPTIONS == DP_RUN_FLAGS, "as many values");

const struct dp_command dp_run_command = {
    .name = "run",
    .usage = "--model MODEL --train FILE [--test FILE] [--servers N] [--workers N] [...]",
    .summary =
        "Trains on this machine: starts servers and workers, shows progress, stops them and prints the "
        "result.\nExample: downpour run --servers 2 --workers 2 --model logistic --train a9a --test a9a.t",
    .options = options,
    .count = OPTIONS,
    .aliases = aliases,
};

int dp_run_show_help(int argc, char *const *argv)
{
    const char *topic[2];
    dp_options_topic(argc, argv, topic);
    if (!topic[0])
        return dp_options_show_help(&dp_run_command);
    const char *name = strcmp(topic[0], "models") == 0 ? topic[1] : topic[0];
    if (!dp_model_help_print(name, stdout)) {
        fprintf(stderr,
                "downpour: no help on '%s': 'downpour run --help models' shows all models, 'downpour "
                "run --help' all flags\n",
                name);
        return 2;
    }
    if (fflush(stdout) == 0)
        return 0;
    fprintf(stderr, "downpour: cannot write to standard output: %s\n", strerror(errno));
    return 2;
}
