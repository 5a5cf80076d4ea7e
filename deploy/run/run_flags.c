#include "deploy/run/run_flags.h"

#include "common/model/mode.h"
#include "common/model/table.h"
#include "worker/compute/models/model.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct dp_option options[] = {
    DP_OPTION_HEADING("Model and data"),
    {"--model", "MODEL", "model",
     "required: logistic, fm:8, mlp:64, ...; --help models explains them\nAlso neumf:16-64-32-16, "
     "wide-deep:16-256-128, deepfm:16-256-128, dlrm:64, skipgram:64, lstm:16-32-64"},
    {"--train", "FILE", "data.train",
     "training data (required); - for standard input\nlibsvm text, MNIST idx images, pairs 'user item', "
     "lists 'user item item', Criteo's logs, CSV, text; plain, .gz, .zst, .xz, .bz2 or .zip"},
    {"--train labels", "FILE", "data.train_labels",
     "labels of idx images; default: found by the name of the images"},
    {"--train user", "COLUMN", "data.user",
     "pairs: column of the user, by name or number from 1; default: by the header, else the first. "
     "Also --user, as --item, --rating and --time"},
    {"--train item", "COLUMN", "data.item",
     "pairs: column of the item; default: by the header, else the second"},
    {"--train rating", "COLUMN", "data.rating",
     "pairs: column of the rating, for mf:K,loss=squared; default: by the header, else the third"},
    {"--train time", "COLUMN", "data.time",
     "pairs: column of the time, which is no rating; default: by the header"},
    {"--test", "FILE", "data.test",
     "test data, evaluated after each epoch; default: none\nAll workers rest while it is evaluated"},
    {"--test labels", "FILE", "data.test_labels", "labels of --test"},
    {"--test negatives", "FILE", "data.test_negatives",
     "pairs: file of lines '(user,item) item item ...': the items among which each pair of --test is ranked"},
    {"--validation", "FILE", "data.validation",
     "validation data for early stopping, or share=0.1 of --train\nEvaluated after each epoch; --test is "
     "then evaluated once, at the end"},
    {"--validation share", "X", "data.validation_share",
     "hold out this share of --train for validation, 0 .. 0.9"},
    {"--validation labels", "FILE", "data.validation_labels", "labels of --validation"},
    {"--validation negatives", "FILE", "data.validation_negatives", "as negatives of --test"},
    {"--holdout", "RULE", "data.holdout",
     "pairs: test set held out: leave-one-out, or a share of each user's items\nleave-one-out: one item of "
     "each user; --seed chooses them"},
    {"--holdout negatives", "N", "data.holdout_negatives",
     "leave-one-out: also rank each item among this many sampled items; default 99"},
    {"--label", "NAME", "data.label", "CSV: name of the label's column"},
    {"--ignore", "NAMES", "data.ignore", "CSV: columns that are left out, a,b,..."},
    {"--id", "NAME", "data.id",
     "CSV: a column that names rows: left out, and written by predict before a score"},
    DP_OPTION_HEADING("Training"),
    {"--epochs", "N", "training.epochs",
     "passes over the training data; default: by model and size\n0: 1 to 100, chosen from the model and "
     "the size of the data"},
    {"--batch", "N", "training.batch",
     "examples per minibatch; default 0: 128 (skipgram: 2048 words), or fewer for little data\n(at least 4) "
     "for less than 4,096 "
     "examples"},
    {"--rate", "X", "training.rate",
     "learning rate; default 0.001 (fm, deepfm, wide-deep, dlrm with loss=squared: 0.002; mf: 0.01; "
     "skipgram: 0.1)"},
    {"--rate warmup", "N", "training.warmup_steps",
     "minibatches (of all workers) over which the rate rises to its value; default 0"},
    {"--rate decay", "KIND", "training.decay",
     "decay of the rate: none, linear, cosine or inverse-sqrt; default linear, but none with a rate that is "
     "given, with ftrl, for lstm, and for more than two classes"},
    {"--rate end", "X", "training.rate_end", "final rate of linear and cosine decay; default 0"},
    {"--optimizer", "NAME", "training.optimizer.kind", DP_OPTIMIZER_NAMES "; default adam"},
    {"--optimizer l2", "X", "training.optimizer.l2", "L2 regularization (all optimizers); default 0"},
    {"--optimizer l1", "X", "training.optimizer.l1", "L1 regularization (ftrl); default 0"},
    {"--optimizer decay", "X", "training.optimizer.decay",
     "decoupled weight decay, of optimizers that have it; default 0, of adamw 0.01"},
    {"--optimizer momentum", "X", "training.optimizer.momentum",
     "momentum of sgd; default 0, of momentum 0.9"},
    {"--optimizer beta1", "X", "training.optimizer.beta1",
     "beta1, of optimizers that have it; default 0.9, for skipgram 0"},
    {"--optimizer beta2", "X", "training.optimizer.beta2",
     "beta2, of optimizers that have it; adam's default 0.999"},
    {"--optimizer epsilon", "X", "training.optimizer.epsilon",
     "epsilon, of optimizers that have it; default of adam 1e-8 (skipgram: 5e-5), of adagrad 1e-10"},
    {"--consistency", "MODE", "training.consistency",
     "async, ssp:S, sync or sync:B: who waits for whom; default async\nHow far workers may be "
     "apart: " DP_MODE_HELP},
    {"--stop-at", "METRIC:VALUE", "training.stop_at",
     "stop after the epoch whose validation (or test) metric reaches VALUE\nMETRIC: loss, logloss, rmse, "
     "accuracy, auc, hr@10, ndcg@10, recall@K, ndcg@K; for example auc:0.8"},
    {"--patience", "N", "training.patience", "stop after N epochs without a better metric; default 0: never"},
    {"--patience metric", "METRIC", "training.patience_metric", "default: that of --stop-at, else the loss"},
    {"--seed", "N", "training.seed", "seed of initial weights and shuffling; default 1"},
    DP_OPTION_HEADING("Resources"),
    {"--servers", "N", NULL, "server processes; default 1"},
    {"--workers", "N", "training.workers", "worker processes; default 1"},
    {"--threads", "N", "training.threads",
     "threads of each worker, without locks (Hogwild!); default 1\nThey share its weights; for sparse "
     "models on the CPU. 16 minibatches (or --fetch-every) are then pulled and pushed together, for which "
     "optimizers other than sgd take one step"},
    {"--device", "NAME", "training.device",
     "where workers compute: cpu, cuda:N, cuda:each or auto; default cpu\ncuda:each: worker number modulo "
     "number of GPUs; auto: the first GPU if there is one"},
    {"--durability", "KIND", "durability",
     "what an acknowledged push survives; default machine\nmachine (power loss), process (kill -9) or none"},
    DP_OPTION_HEADING("Files"),
    {"--dir", "DIR", NULL,
     "directory for cluster file, logs, store, report; default downpour-run\nA second run there continues "
     "from its weights. Data, model and settings must match; a different --workers, --threads, --work or "
     "--consistency is allowed and reported"},
    {"--resume", NULL, NULL,
     "finish the interrupted run in DIR, from exactly where it was\nNo other flag is needed; flags that "
     "would change the training are refused"},
    {"--continue", NULL, NULL,
     "train on from the weights in DIR, also with other settings\nEven if that run is not finished. Other "
     "flags change its data and settings (the model must fit); settings without a flag stay. A further "
     "--train file is read by the model's schema, DIR/current/columns.csv. The optimizer, --seed, --servers "
     "and --shards cannot change"},
    {"--fresh", NULL, NULL,
     "start with new weights in DIR\nFiles of earlier runs, with their store, are removed once this run "
     "trains (decoded data in DIR/cache stays). Without --model, --train and --cluster it takes the "
     "settings of the run there, which other flags change"},
    {"--from", "CHECKPOINT", NULL,
     "continue from a checkpoint in a new --dir\nDIR/checkpoint-000001, or DIR: its last one; on any "
     "--servers and --shards. Other flags as with --resume; with --continue also other settings. --train "
     "gives the present place of the training file"},
    {"--report", "FILE", NULL,
     "JSON report; - for standard output; default DIR/report.json\nRewritten after each epoch; to standard "
     "output at the end"},
    {"--cluster", "FILE", NULL,
     "cluster file with settings, which flags override\nThe number of servers and shards is taken from it, "
     "its addresses are not"},
    DP_OPTION_RARE("Data formats"),
    {"--format", "NAME", "data.format",
     "format of the data files; default auto: detected from the model and the first bytes"},
    {"--encoding", "NAME", "data.encoding",
     "encoding of texts, as latin1 or cp1252 ('iconv -l' lists them); default utf-8"},
    {"--window", "N", "data.window",
     "text for skipgram: greatest distance of two words of a line that form a pair; default 5"},
    {"--words", "plain|simple", "data.words",
     "text for skipgram: what a word is; default simple\nsimple: runs of letters and digits, in lower case; "
     "plain: bytes between blanks, as they are"},
    {"--min-count", "N", "data.min_count",
     "text for skipgram: leave out words that occur less often; default 5"},
    {"--subsample", "T", "data.subsample",
     "text for skipgram: drop words at random that are more than this share of the text, the more frequent "
     "the "
     "more often; default 0.001\n0: none"},
    {"--categories", "NAMES", "data.categories",
     "CSV: further columns of categories, such as codes that are numbers, a,b,..., by name or number from 1\n"
     "Columns with a text in the first 1,000 lines are categories without it"},
    {"--lists", "NAMES", "data.lists",
     "CSV: columns, a,b,..., that hold several categories in a cell, separated by |: Action|Drama; by name "
     "or "
     "number from 1"},
    {"--missing", "TEXTS", "data.missing",
     "CSV: further texts that say that a cell is missing, '?,-,n.a.'; an empty cell, NA, NaN and null do"},
    {"--weight", "COLUMN", "data.weight",
     "CSV: column by which the losses of training rows are multiplied, by name or number from 1"},
    {"--class-weight", "WEIGHTS", "data.class_weight",
     "balanced: each class has the same weight in all; or 'yes=5,no=1'\nMultiplies the losses of training "
     "examples; metrics of test sets have no weights"},
    {"--new-columns", "refuse|ignore", "data.new_columns",
     "CSV, of a further training file, test and validation files of this run: columns that the first "
     "training "
     "file lacks; default refuse, in each run"},
    {"--missing-columns", "refuse|empty", "data.missing_columns",
     "CSV: columns of the first training file that a further file lacks; empty: empty cells; default refuse, "
     "in each "
     "run"},
    {"--hash-bits", "N", "data.hash_bits", "CSV, Criteo: hash categories to this many bits; default 63"},
    {"--top-k", "K", "training.top_k", "pairs: report recall@K and NDCG@K among all items; default 20"},
    {"--negatives", "N", "data.negatives",
     "pairs and text: items (words) sampled for each pair (near word); default 4"},
    {"--cache", "DIR", "data.cache",
     "directory for decoded data files, which the next start reuses; default DIR/cache of --dir"},
    {"--index-base", "0|1", "data.index_base", "libsvm text: number of the first feature; default 1"},
    {"--label-base", "N", "data.label_base",
     "number of the first class; default 0, or 1 if all labels are 1 .. number of classes"},
    {"--scale", "X", "data.scale", "multiply each value by X; default 1, for idx images 1/255"},
    {"--normalize", NULL, "data.normalize=true", "scale each example to Euclidean norm 1"},
    {"--standardize", "yes|no", "data.standardize",
     "CSV: replace numbers by (x - mean) / deviation of the column in the training file; default yes"},
    DP_OPTION_RARE("Metrics over time"),
    {"--sample-every", "TIME", NULL,
     "sample the weights during the training, every TIME (200ms) and 16 times an epoch, and score the "
     "samples afterwards, so that no worker stops to evaluate. DIR/samples.json has the metrics over time, "
     "on --score, else on --test or --holdout (which is then not evaluated after each epoch)"},
    {"--score", "FILE", NULL,
     "with --sample-every: the data for scoring the samples, like --test; 'validation': the validation set"},
    {"--score labels", "FILE", NULL, "labels of --score"},
    {"--score negatives", "FILE", NULL, "as negatives of --test"},
    DP_OPTION_RARE("Pulls and pushes"),
    {"--schedule", "restart|continue", "training.schedule",
     "warmup and decay of the rate in a further run; default restart\ncontinue: after the earlier epochs, as "
     "if they had been this run's"},
    {"--fetch-every", "N", "training.fetch_every", "pull the weights every N minibatches; default 1"},
    {"--push-every", "N", "training.push_every", "push the gradients of N minibatches together; default 1"},
    {"--accumulate", "N", "training.accumulate",
     "push the sum of the gradients of N minibatches on the same weights; default 1"},
    {"--work", "fixed|leased", "training.work",
     "minibatches of a worker: a fixed share, or leases from a common list, so that fast workers do more "
     "and others do the part of a dead one (async only); default fixed"},
    {"--rate-by-staleness", NULL, "training.rate_by_staleness=true",
     "divide the learning rate of a push by the number of pushes that a shard applied since its pull, if "
     "over 1; not with sync"},
    {"--no-overlap", NULL, "training.overlap=false",
     "do not read and pull the next minibatch while the current one is computed"},
    {"--bf16", NULL, "training.bf16_values=true", "send values as bf16: half the bytes, 8 bits of precision"},
    {"--keep", "WHICH", "training.keep",
     "weights in the store at the end: of the best or the last epoch; default best with a validation set, "
     "--stop-at or --patience, else last, and last without a journal (--durability none)"},
    DP_OPTION_RARE("Servers and workers"),
    {"--shards", "N", NULL, "shards (threads) of each server; default 1"},
    {"--blas-threads", "N", "training.blas_threads",
     "threads for the matrix products of each worker; default 1"},
    {"--precision", "KIND", "training.precision",
     "precision of a GPU's matrix products: f32, tf32 or bf16; default f32"},
    {"--journal-bytes", "BYTES", "journal_bytes", "disk space for the journal of each shard; default 1GiB"},
    {"--cache-bytes", "BYTES", "cache_bytes", "memory for the rows of each shard (\"512MiB\"); default 1GiB"},
    {"--port", "N", NULL, "control port of the first server, the next ports follow; default: free ports"},
    {"--port metrics", "[ADDRESS:]PORT", "metrics",
     "serve a page and metrics for Prometheus over HTTP: the first server there, the next ones on the next "
     "ports; "
     "default none\nWithout ADDRESS on loopback; port 0: free ports, which log/server-N.log names"},
    {"--timeout", "SECONDS", NULL, "longest wait for a server without progress, 1 .. 600; default 30"},
    {"--worker-timeout", "SECONDS", "training.worker_timeout",
     "with ssp and sync: remove a worker after so many seconds of silence (longer than a restart takes). "
     "It may rejoin; its missed minibatches are not trained. Worker 0 is never removed. Default 0: the "
     "others wait for it"},
    {"--restarts", "N", NULL,
     "restart processes that crash or are killed up to N times within 10 minutes, 0 .. 10000; default 20. "
     "A process that crashes twice in the same way is not restarted"},
    DP_OPTION_RARE("Terminal and scripts"),
    {"--quiet", NULL, NULL, "print warnings and errors only"},
    {"--json", NULL, NULL,
     "print one line of JSON to standard output at the end, after a failure too; all else goes to standard "
     "error"},
    {"--dry-run", NULL, NULL,
     "say what was understood, sizes, and about how long it takes, by a trial of some seconds in TMPDIR; "
     "with "
     "--continue by the schema of the run there, with new weights; DIR "
     "is not changed"},
    {"--config", "FILE", NULL,
     "flags from a file (epochs = 20; rate = 0.01;), which the command line overrides"},
    {"--print-config", NULL, NULL, "print the flags given, from --config too, as such a file, and end"},
    DP_OPTION_RARE("Injected delays, to compare modes under stragglers"),
    {"--inject", "KEY=VALUE,...", NULL, "delays: --inject pace=20ms,straggler=3:10x; default none"},
    {"--inject pace", "TIME", "training.pace",
     "least time of a minibatch (20ms), so that two processors carry four workers. The wait counts as "
     "computing and changes no weights of a sync run. A minibatch that is computed in c takes max(c, TIME "
     "x draw) x FACTOR + TIME of straggler"},
    {"--inject jitter", "exp|uniform", "training.jitter",
     "multiply pace by a draw of mean 1 for each minibatch: with pace=20ms exp is the exponential "
     "distribution of mean 20 ms, uniform is 0 .. 40 ms; drawn from seed, epoch and number of the "
     "minibatch, so equal in all modes"},
    {"--inject straggler", "W:10x|W:TIME", "training.straggler",
     "worker W's minibatches take 10 times as long (give pace, which it multiplies), or TIME longer "
     "(3:50ms); several with commas between"},
    DP_OPTION_RARE("When a store is lost"),
    {"--replace-store", NULL, NULL,
     "continue although a store in DIR is lost (its shard starts empty), older or another one. The losses "
     "are listed first; there is no way back"},
    {"--discard", NULL, NULL,
     "with --resume: stores without a journal (--durability none) that were not closed cleanly start "
     "empty, and their minibatches are trained again"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_option_alias aliases[] = {
    {"--lr", "--rate"},
    {"--learning-rate", "--rate"},
    {"--batch-size", "--batch"},
    {"--weight-decay", "--optimizer decay"},
    {"--decay-weight", "--optimizer decay"},
    {"--l2", "--optimizer l2"},
    {"--l1", "--optimizer l1"},
    {"--momentum", "--optimizer momentum"},
    {"--beta1", "--optimizer beta1"},
    {"--beta2", "--optimizer beta2"},
    {"--epsilon", "--optimizer epsilon"},
    {"--warmup", "--rate warmup"},
    {"--decay", "--rate decay"},
    {"--rate-end", "--rate end"},
    {"--patience-metric", "--patience metric"},
    {"--train-labels", "--train labels"},
    {"--test-labels", "--test labels"},
    {"--test-negatives", "--test negatives"},
    {"--validation-share", "--validation share"},
    {"--validation-labels", "--validation labels"},
    {"--validation-negatives", "--validation negatives"},
    {"--holdout-negatives", "--holdout negatives"},
    {"--score-labels", "--score labels"},
    {"--score-negatives", "--score negatives"},
    {"--pace", "--inject pace"},
    {"--jitter", "--inject jitter"},
    {"--straggler", "--inject straggler"},
    {NULL, NULL},
};

static const struct dp_option_alias as_flags[] = {
    {"--user", "--train user"},
    {"--item", "--train item"},
    {"--rating", "--train rating"},
    {"--time", "--train time"},
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
    .as_flags = as_flags,
};

int dp_run_show_help(int argc, char *const *argv)
{
    const char *topic[2];
    dp_options_topic(argc, argv, topic);
    if (!topic[0] || strcmp(topic[0], "all") == 0)
        return dp_options_show_short_help(&dp_run_command, argc, argv);
    const char *name = strcmp(topic[0], "models") == 0 ? topic[1] : topic[0];
    if (!dp_model_help_print(name, stdout)) {
        fprintf(stderr,
                "downpour: no help on '%s': 'downpour run --help models' shows all models, 'downpour "
                "run --help all' all flags\n",
                name);
        return 2;
    }
    return dp_options_shown();
}
