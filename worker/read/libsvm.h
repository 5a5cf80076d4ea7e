/* Libsvm: the lines "label index:value index:value ... # comment" out of blocks of text; libfm's are the
 * same.
 *     new -> feed, feed, ... -> finish -> free
 * Promise   Blocks may be cut anywhere. Blanks and tabs separate; lines end in LF or CR LF, the last may
 *           lack it; empty lines and lines with only a comment hold no example. Indices are 0 .. 2^63-1 in
 *           any order, none twice in a line; label and values are finite f32.
 * Thread    One at a time.
 * Memory    The longest line that a block's edge cuts (beyond DP_LINES_MAX bytes it is refused), and the longest example. An example is lent to
 *           `visit` for that call only.
 * Failure   DP_DATA ("name:line: what was expected"), DP_NOMEM, or what `visit` returns, with "name:line"
 *           put in front of its text. The first one is the last: free is all that may follow. */
#ifndef DP_READ_LIBSVM_H
#define DP_READ_LIBSVM_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_libsvm_example {
    float label;
    size_t entries;
    const uint64_t *indices;
    const float *values;
};

struct dp_libsvm_sink {
    enum dp_status (*visit)(void *self, const struct dp_libsvm_example *example, struct dp_error *err);
    void *self;
};

struct dp_libsvm;

/* `name` is for messages. labels_optional: a line may begin with index:value; its label is then 0. */
DP_MUST_USE
enum dp_status dp_libsvm_new(const char *name, bool labels_optional, struct dp_libsvm_sink sink,
                             struct dp_libsvm **out, struct dp_error *err);
void dp_libsvm_free(struct dp_libsvm **libsvm); /* accepts NULL inside, leaves NULL */
DP_MUST_USE
enum dp_status dp_libsvm_feed(struct dp_libsvm *libsvm, const void *bytes, size_t len, struct dp_error *err);
/* The end of the text: the last line, if it lacked its newline. */
DP_MUST_USE
enum dp_status dp_libsvm_finish(struct dp_libsvm *libsvm, struct dp_error *err);

#endif
