/* Side files: the files that a training writes next to its store, for predictions, exports and further runs.
 * A checkpoint has copies of them, so that a run from it has them, too.
 *     names         what the keys of its rows are called (common/vocab/vocab.h)
 *     columns       how its data was read (worker/read/schema.h)
 *     interactions  which items each user has met (worker/read/interactions.h) */
#ifndef DP_CONFIG_SIDE_FILES_H
#define DP_CONFIG_SIDE_FILES_H

enum dp_side { DP_SIDE_NAMES, DP_SIDE_COLUMNS, DP_SIDE_INTERACTIONS, DP_SIDE_FILES };

struct dp_side_file {
    const char *key;  /* in a cluster file's `data`, and in a manifest */
    const char *name; /* in a run's directory, and in a checkpoint */
};

static const struct dp_side_file dp_side_files[DP_SIDE_FILES] = {
    [DP_SIDE_NAMES] = {"names", "names.tsv"},
    [DP_SIDE_COLUMNS] = {"columns", "columns.csv"},
    [DP_SIDE_INTERACTIONS] = {"interactions", "interactions.bin"},
};

#endif
