/* Fuzz: any bytes as lines of a text, and as records of a CSV file. The first byte says where the text is
 * cut into two blocks; the lines must be the same as without a cut, and keep what lines.h promises. */
#include "common/base/hash.h"
#include "worker/read/lines.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct seen {
    uint64_t lines, last, hash;
};

static enum dp_status visit(void *self, const char *at, const char *end, uint64_t line, struct dp_error *err)
{
    struct seen *seen = self;
    DP_ASSERT(at <= end && line > seen->last && (at == end || !memchr(at, '\0', (size_t)(end - at))));
    seen->lines++;
    seen->last = line;
    seen->hash = dp_hash_mix(dp_hash_bytes(seen->hash, at, (size_t)(end - at)) + line);
    return DP_OK;
}

static enum dp_status cut_lines(bool quotes, const uint8_t *text, size_t len, size_t cut, struct seen *seen)
{
    struct dp_error err = {0};
    struct dp_lines *lines = NULL;
    enum dp_status st = dp_lines_new("fuzz", quotes, (struct dp_lines_sink){visit, seen}, &lines, &err);
    if (st == DP_OK)
        st = dp_lines_feed(lines, text, cut, &err);
    if (st == DP_OK)
        st = dp_lines_feed(lines, text + cut, len - cut, &err);
    if (st == DP_OK)
        st = dp_lines_finish(lines, &err);
    dp_lines_free(&lines);
    DP_ASSERT(st == DP_OK || st == DP_DATA || st == DP_NOMEM);
    DP_ASSERT(st == DP_OK || strncmp(err.text, "fuzz:", 5) == 0);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    for (int quotes = 0; len > 0 && quotes < 2; quotes++) {
        struct seen whole = {0}, cut = {0};
        enum dp_status a = cut_lines(quotes, bytes + 1, len - 1, 0, &whole);
        enum dp_status b = cut_lines(quotes, bytes + 1, len - 1, (len - 1) * bytes[0] / 256, &cut);
        DP_ASSERT(a == b && whole.lines == cut.lines && whole.hash == cut.hash);
    }
    return 0;
}
