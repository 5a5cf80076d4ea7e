/* Fuzz: any bytes as libsvm text. The first byte says where the text is cut into two blocks; the examples
 * must be the same as without a cut, and keep what libsvm.h promises. */
#include "common/base/status.h"
#include "worker/read/libsvm.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct seen {
    uint64_t examples, entries, hash;
};

static enum dp_status visit(void *self, const struct dp_libsvm_example *example, struct dp_error *err)
{
    struct seen *seen = self;
    (void)err;
    DP_ASSERT(isfinite(example->label));
    seen->examples++;
    seen->entries += example->entries;
    for (size_t i = 0; i < example->entries; i++) {
        uint32_t bits;
        DP_ASSERT(example->indices[i] <= INT64_MAX && isfinite(example->values[i]));
        memcpy(&bits, &example->values[i], sizeof bits);
        seen->hash = (seen->hash ^ example->indices[i] ^ bits) * 0x9e3779b97f4a7c15u;
    }
    return DP_OK;
}

static enum dp_status parse(const uint8_t *text, size_t len, size_t cut, struct seen *seen)
{
    struct dp_error err = {0};
    struct dp_libsvm *libsvm = NULL;
    enum dp_status st = dp_libsvm_new("fuzz", false, (struct dp_libsvm_sink){visit, seen}, &libsvm, &err);
    if (st == DP_OK)
        st = dp_libsvm_feed(libsvm, text, cut, &err);
    if (st == DP_OK)
        st = dp_libsvm_feed(libsvm, text + cut, len - cut, &err);
    if (st == DP_OK)
        st = dp_libsvm_finish(libsvm, &err);
    dp_libsvm_free(&libsvm);
    DP_ASSERT(st == DP_OK || st == DP_DATA || st == DP_NOMEM);
    DP_ASSERT(st == DP_OK || strncmp(err.text, "fuzz:", 5) == 0);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct seen whole = {0}, cut = {0};
    if (len == 0)
        return 0;
    const uint8_t *text = bytes + 1;
    enum dp_status a = parse(text, len - 1, 0, &whole);
    enum dp_status b = parse(text, len - 1, (len - 1) * bytes[0] / 256, &cut);
    DP_ASSERT(a == b && whole.examples == cut.examples && whole.entries == cut.entries &&
              whole.hash == cut.hash);
    return 0;
}
