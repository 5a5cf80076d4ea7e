#include "deploy/compare/compare_flags.h"

#include "common/model/mode.h"
#include "deploy/run/run_flags.h"

#include <string.h>

static const struct dp_option own[] = {
    DP_OPTION_HEADING("Comparison"),
    {"--modes", "A,B,...",
     DP_MODE_FORMS
     ", async:leased, hogwild (threads of one worker), allreduce (MPI, without "
     "servers). sync@8: with 8 workers instead of --workers. async[rate=0.01,momentum=0.5]: with settings of "
     "its own, by the names of run's flags. async+prefetch: it pulls the next minibatch before it pushes the "
     "current one, as run does. Differences are from the first mode; default async,ssp:4,sync",
     NULL, NULL},
    {"--seeds", "N", "runs of each mode, with the seeds --seed, --seed + 1, ...: 1 .. 99; default 5", NULL,
     NULL},
    {"--target", "METRIC:VALUE",
     "value to reach on the test set, in the form of run's --stop-at: accuracy:0.95; default, chosen "
     "afterwards: 95% of the way from the best constant to the value that the best mode keeps at its end",
     NULL, NULL},
    {"--sample-every", "TIME",
     "how often the weights are sampled, 10ms .. 1h (they are scored after the run); default 500ms", NULL,
     NULL},
    {"--lr-grid", "X,Y,...|none",
     "learning rates, of which each mode gets its best: tried before the runs, on other seeds, scored on a "
     "part of --train that these tries do not train on; none: all modes have --rate; default: a third of "
     "--rate, --rate, and three times it. A mode with a rate of its own keeps that",
     NULL, NULL},
    {"--grid-seeds", "N", "seeds that each rate is tried on, 1 .. 99; default 1", NULL, NULL},
    {"--dir", "DIR", "directory for report, page and runs; default ./downpour-compare", NULL, NULL},
    {"--overwrite", NULL, "replace a comparison that is in DIR", NULL, NULL},
    {"--resume", NULL,
     "continue the interrupted comparison in DIR with its own flags (give no other flag but --dir); runs "
     "that ended well are kept",
     NULL, NULL},
    {"--like", "REPORT",
     "make the comparison of this report.json (or of its directory) again, here, with its flags; flags that "
     "are "
     "given replace its own, such as --train for a file that lies elsewhere; data with other bytes is "
     "refused",
     NULL, NULL},
    {"--keep-stores", NULL, "keep the weights of each run (runs/MODE/seed-N/store), for predict and export",
     NULL, NULL},
};
#define OWN (sizeof own / sizeof own[0])

static const char *const not_of_compare[] = {
    "--validation",
    "--validation-share",
    "--validation-labels",
    "--validation-negatives",
    "--stop-at",
    "--patience",
    "--patience-metric",
    "--keep",
    "--no-overlap",
    "--consistency",
    "--work",
    "--threads",
    "--port",
    "--dir",
    "--from",
    "--resume",
    "--continue",
    "--fresh",
    "--replace-store",
    "--discard",
    "--report",
    "--cluster",
    "--sample-every",
    "--score",
    "--score-labels",
    "--score-negatives",
};

static bool is_left_out(const char *name)
{
    for (size_t i = 0; i < sizeof not_of_compare / sizeof not_of_compare[0]; i++)
        if (strcmp(name, not_of_compare[i]) == 0)
            return true;
    return false;
}

bool dp_compare_is_of_run(const char *name)
{
    for (size_t i = 0; i < dp_run_command.count; i++)
        if (dp_run_command.options[i].name && strcmp(dp_run_command.options[i].name, name) == 0)
            return !is_left_out(name);
    return false;
}

/* A heading stays where a flag below it does. */
static size_t take_of_run(struct dp_option *out, size_t count)
{
    const struct dp_option *heading = NULL;
    for (size_t i = 0; i < dp_run_command.count; i++) {
        const struct dp_option *option = &dp_run_command.options[i];
        if (!option->name) {
            heading = option;
            continue;
        }
        if (is_left_out(option->name))
            continue;
        DP_ASSERT(count + 2 <= DP_COMPARE_FLAGS_MAX);
        if (heading)
            out[count++] = *heading;
        heading = NULL;
        out[count] = *option;
        if (strcmp(option->name, "--test") == 0)
            out[count].help =
                "test data (required; pairs: or --holdout), on which samples of the weights are scored";
        count++;
    }
    return count;
}

const struct dp_command *dp_compare_command(void)
{
    static struct dp_option all[DP_COMPARE_FLAGS_MAX];
    static struct dp_command command = {
        .name = "compare",
        .usage = "--model MODEL --train FILE --test FILE [--modes A,B,...] [--workers N] [--seeds N] [...]",
        .summary = "Trains the same job in several modes on this machine, each with several seeds, in turns; "
                   "samples the weights\nduring the runs, scores them on the test set afterwards, and makes "
                   "a page (DIR/report.html) and DIR/report.json:\nwhich mode reaches the target first in "
                   "time and in examples, where it ends, how stale its updates were,\nwhere the time went, "
                   "and how sure that is. A mode that fails leaves the others' results.\nExample: downpour "
                   "compare --modes async,ssp:4,sync --workers 4 --pace 10ms --straggler 3:4x\n         "
                   "--model mlp:784-128-10 --train train-images --test t10k-images --epochs 3",
        .options = all,
    };
    if (command.count == 0) {
        memcpy(all, own, sizeof own);
        command.count = take_of_run(all, OWN);
        command.aliases = dp_run_command.aliases;
    }
    return &command;
}
