#include "deploy/cli/run_flags.h"

#include "worker/compute/model_help.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct dp_option options[] = {
    DP_OPTION_HEADING("What is trained"),
    {"--model", "MODEL",
     "logistic, fm:8, mlp:64-64-10, mf:16, neumf:16-64-32-16, wide-deep:16-256-128, deepfm:16-256-128, "
     "dlrm:64, skipgram:64, lstm:16-32-64 (needed); 'downpour run --help models' says what the numbers are",
     "model", NULL},
    {"--train", "FILE",
     "libsvm text, MNIST idx images, pairs 'user item', lists 'user item item', Criteo's logs, CSV, text; "
     "plain, .gz, .zst, .xz or .bz2 "
     "(needed)",
     "data.train", NULL},
    {"--test", "FILE", "evaluated after each epoch, all workers at rest; default: none", "data.test", NULL},
    {"--train-labels", "FILE", "labels of idx images; default: by the images' name", "data.train_labels",
     NULL},
    {"--test-labels", "FILE", "the same for --test", "data.test_labels", NULL},
    {"--test-negatives", "FILE",
     "pairs: lines '(user,item) item item ...', among which each pair of --test is ranked",
     "data.test_negatives", NULL},
    {"--validation", "FILE", "the same, to judge the training by; --test is then evaluated at the end only",
     "data.validation", NULL},
    {"--validation-share", "X", "the same with a share of --train, 0 .. 0.9, not trained on",
     "data.validation_share", NULL},
    {"--validation-labels", "FILE", "as --test-labels", "data.validation_labels", NULL},
    {"--validation-negatives", "FILE", "as --test-negatives", "data.validation_negatives", NULL},
    {"--format", "NAME", "of the data files; default auto: by the model and the first bytes", "data.format",
     NULL},
    {"--window", "N", "text as pairs: how many words a near word is away at most; default 5", "data.window",
     NULL},
    {"--label", "NAME", "CSV: the column that is the label", "data.label", NULL},
    {"--categories", "NAMES", "CSV: columns that are no numbers, a,b,...; default: by the first 1,000 lines",
     "data.categories", NULL},
    {"--hash-bits", "N", "CSV, Criteo: categories are hashed to so many bits; default 63", "data.hash_bits",
     NULL},
    {"--holdout", "leave-one-out|SHARE",
     "pairs: what of --train is the test set: one item of each user, or a share of each user's items, by "
     "--seed",
     "data.holdout", NULL},
    {"--holdout-negatives", "N",
     "leave-one-out: sampled items that each is ranked among, beside all; default 99",
     "data.holdout_negatives", NULL},
    {"--top-k", "K", "pairs: recall@K and NDCG@K of items ranked among all; default 20", "training.top_k",
     NULL},
    {"--negatives", "N", "pairs: items (of text: words) sampled for each; default 4", "data.negatives", NULL},
    {"--cache", "DIR", "where decoded data files are kept for the next start; default DIR/cache of --dir",
     "data.cache", NULL},
    {"--index-base", "0|1", "number of the first feature in libsvm text; default 1", "data.index_base", NULL},
    {"--label-base", "N",
     "number of the first class; default: 0, or 1 where all labels are 1 .. the number of classes",
     "data.label_base", NULL},
    {"--scale", "X", "each value is multiplied by it; default 1, for idx images 1/255", "data.scale", NULL},
    {"--normalize", NULL, "scale each example to Euclidean length 1", "data.normalize", "true"},
    {"--standardize", "yes|no",
     "CSV: numbers become (x - mean) / deviation, of the training file's columns; default yes",
     "data.standardize", NULL},
    DP_OPTION_HEADING("How"),
    {"--epochs", "N", "passes over the training data; default 0: by its size and the model, 1 to 100",
     "training.epochs", NULL},
    {"--stop-at", "METRIC:VALUE",
     "end with the epoch whose validation (or test) figure is as good: loss, logloss, rmse, accuracy, auc, "
     "hr@10, "
     "ndcg@10, recall@K, ndcg@K; auc:0.8",
     "training.stop_at", NULL},
    {"--patience", "N", "end after N epochs without a better figure; default 0: do not", "training.patience",
     NULL},
    {"--patience-metric", "METRIC", "which figure; default: that of --stop-at, else the loss",
     "training.patience_metric", NULL},
    {"--keep", "WHICH",
     "whose weights stay in the end: best (the best epoch's) or last; default: best where there is a "
     "validation set, --stop-at or --patience",
     "training.keep", NULL},
    {"--batch", "N",
     "examples in a minibatch; default 0: 128, for less than 4,096 examples fewer, 4 at least",
     "training.batch", NULL},
    {"--rate", "X", "learning rate; default 0.001", "training.rate", NULL},
    {"--optimizer", "NAME", "sgd, momentum, adagrad, adam, adamw or ftrl; default adam",
     "training.optimizer.kind", NULL},
    {"--l2", "X", "L2 regularisation, all optimizers; default 0", "training.optimizer.l2", NULL},
    {"--l1", "X", "L1 regularisation (ftrl); default 0", "training.optimizer.l1", NULL},
    {"--decay-weight", "X", "decoupled weight decay (adam, adamw); default 0, adamw 0.01",
     "training.optimizer.decay", NULL},
    {"--momentum", "X", "of sgd; default 0, momentum 0.9", "training.optimizer.momentum", NULL},
    {"--beta1", "X", "of adam; default 0.9", "training.optimizer.beta1", NULL},
    {"--beta2", "X", "of adam; default 0.999", "training.optimizer.beta2", NULL},
    {"--epsilon", "X", "of adam and adagrad; default 1e-8 and 1e-10", "training.optimizer.epsilon", NULL},
    {"--warmup", "N", "minibatches (of all workers) in which the rate rises to its value; default 0",
     "training.warmup_steps", NULL},
    {"--decay", "KIND", "of the rate: none, linear, cosine or inverse-sqrt; default none", "training.decay",
     NULL},
    {"--rate-end", "X", "rate at the end of linear and cosine decay; default 0", "training.rate_end", NULL},
    {"--seed", "N", "of initial weights and shuffling; default 1", "training.seed", NULL},
    {"--fetch-every", "N", "minibatches between two pulls of the weights; default 1", "training.fetch_every",
     NULL},
    {"--push-every", "N", "minibatches whose gradients go out as one push; default 1", "training.push_every",
     NULL},
    {"--accumulate", "N", "minibatches on the same weights whose gradients' sum is one push; default 1",
     "training.accumulate", NULL},
    {"--no-overlap", NULL, "do not read and pull the next minibatch while one is computed",
     "training.overlap", "false"},
    {"--bf16", NULL, "values travel as bf16: half the bytes, 8 bits of precision", "training.bf16_values",
     "true"},
    DP_OPTION_HEADING("With what"),
    {"--servers", "N", "server processes; default 1", NULL, NULL},
    {"--workers", "N", "worker processes; default 1", "training.workers", NULL},
    {"--shards", "N", "shards (threads) of each server; default 1", NULL, NULL},
    {"--threads", "N", "threads of each worker's matrix products; default 1", "training.threads", NULL},
    {"--device", "NAME",
     "what workers compute on: cpu, cuda:N (that GPU), cuda:each (worker number modulo GPUs) or auto (the "
     "first GPU where there is one); default cpu",
     "training.device", NULL},
    {"--precision", "KIND", "of a GPU's matrix products: f32, tf32 or bf16; default f32",
     "training.precision", NULL},
    {"--durability", "KIND",
     "what an answered push survives: machine (loss of power), process (kill -9) or none; default machine",
     "durability", NULL},
    {"--journal-bytes", "BYTES", "disk space for the journal of one shard; default 1GiB", "journal_bytes",
     NULL},
    {"--cache-bytes", "BYTES", "memory for the rows of one shard (\"512MiB\"); default 1GiB", "cache_bytes",
     NULL},
    {"--port", "N", "control port of the first server, the others follow; default: free ports are found",
     NULL, NULL},
    {"--timeout", "SECONDS", "longest wait for a server, 1 .. 600; default 30", NULL, NULL},
    {"--restarts", "N",
     "how often processes that died are started again within 10 minutes, 0 .. 10000; default 20", NULL, NULL},
    DP_OPTION_HEADING("Where"),
    {"--dir", "DIR",
     "cluster file, logs, store and report; default ./downpour-run. A finished run there is trained on, "
     "where the "
     "data, the model and the settings are its own",
     NULL, NULL},
    {"--resume", NULL,
     "finish the run in DIR that was stopped, killed or ended with an error, exactly where it was; nothing "
     "else is "
     "needed, and only what does not change the training may be given",
     NULL, NULL},
    {"--continue", NULL,
     "train on from the weights in DIR, finished or not, with other data or settings (the model must fit)",
     NULL, NULL},
    {"--fresh", NULL,
     "start anew in DIR: what earlier runs made there, their store too, is removed as soon as this one "
     "trains "
     "(decoded data in DIR/cache stays)",
     NULL, NULL},
    {"--report", "FILE",
     "result as JSON, after each epoch too; - for standard output, at the end; default DIR/report.json", NULL,
     NULL},
    {"--cluster", "FILE",
     "settings that the flags change; its servers' number and shards, not their addresses", NULL, NULL},
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
    .summary = "Trains on this machine: starts servers and workers, shows how it goes, stops them, tells the "
               "result.\n"
               "Example: downpour run --servers 2 --workers 2 --model logistic --train a9a --test a9a.t",
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
