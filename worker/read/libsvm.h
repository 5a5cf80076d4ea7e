/* Libsvm: parses the lines "label index:value index:value ... # comment" of libsvm and libfm text, block by
 * block.
 *     new -> feed, feed, ... -> finish -> free
 * Promise   Blocks may be cut anywhere. Blanks and tabs separate. Lines end in LF or CR LF, which the last
 *           may lack; empty lines and lines with only a comment hold no example. Indices are 0 .. 2^63-1 in
 *           any order, none twice in a line; label and values are finite f32.
 * Thread    One at a time.
 * Memory    The longest line that a block's edge cuts (over DP_LINES_MAX bytes it is refused), and the
 *           longest example. An example is lent to `visit` for that call only.
 * Failure   DP_DATA ("name:line: expected form"), DP_NOMEM, or the status of `visit`, with "name:line"
 *           before its text. After a failure only free may follow. */
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
/* Ends the text: parses a last line without a newline. */
DP_MUST_USE
enum dp_status dp_libsvm_finish(struct dp_libsvm *libsvm, struct dp_error *err);

#endif
