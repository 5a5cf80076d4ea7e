/* Understood: what was read of a training file, in a few lines for people, and hints on likely mistakes.
 *     csv, 336,776 rows
 *     numbers: month (12 values), distance, ...
 *     categories: carrier (16), dest (104), ...
 *     ignored: title; id: key
 *     label: late (yes 22%)
 *     weight: w (0.1 to 12); class weights: no 0.6, yes 3.1
 *     new: values of 'carrier' 2 of 9, ...      (of a further file, by worker/history/run_files.h)
 * Promise   Lines are at most DP_UNDERSTOOD_WIDTH characters; longer lists are cut, and say how many there
 *           are. Texts are UTF-8 without control characters.
 * Thread    Any. */
#ifndef DP_READ_UNDERSTOOD_H
#define DP_READ_UNDERSTOOD_H

#define DP_UNDERSTOOD_LINES                                                                                  \
    10 /* with lists, ignored columns, weights, what a further file lacks, new names */
#define DP_UNDERSTOOD_WIDTH 200 /* bytes */
#define DP_UNDERSTOOD_NOTES 8

struct dp_understood {
    unsigned lines, notes;
    char line[DP_UNDERSTOOD_LINES][DP_UNDERSTOOD_WIDTH + 90];
    char note[DP_UNDERSTOOD_NOTES][1000];
};

struct dp_tabular_header;
struct dp_schema;
struct dp_content;
struct dp_dataset_options;

/* Of a tabular file: adds lines; the counts of values are those of the first training file. */
void dp_understood_lines(const struct dp_schema *schema, const struct dp_content *content,
                         const struct dp_dataset_options *options, struct dp_understood *out);
/* Of a first training file: adds lines and notes. header: looked at. */
void dp_understood_columns(const struct dp_tabular_header *header, const struct dp_schema *schema,
                           const struct dp_content *content, const struct dp_dataset_options *options,
                           struct dp_understood *out);

#endif
