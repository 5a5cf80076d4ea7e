#include "deploy/cli/amounts.h"

#include "common/base/deadline.h"
#include "common/base/parse.h"

#include <inttypes.h>
#include <string.h>

const char *dp_amount_bytes(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 999.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        unit++;
    }
    (void)snprintf(out, 32, "%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
    return out;
}

void dp_amount_progress(const char *what, uint64_t done, uint64_t all, struct dp_cli_pace *pace, char *out,
                        size_t size)
{
    char of[32], is[32], per_s[32];
    uint64_t now_ms = dp_now_ms();
    if (all == 0) {
        (void)snprintf(out, size, "%s", what);
        return;
    }
    if (done > all) { /* nobody knows yet how long the journal's part is */
        (void)snprintf(out, size, "%s: %s", what, dp_amount_bytes(done, is));
        return;
    }
    double left_s = dp_cli_pace_left(pace, done, all, now_ms);
    int len = snprintf(out, size, "%s: %s of %s", what, dp_amount_bytes(done, is), dp_amount_bytes(all, of));
    if (left_s > 0 && done < all && len > 0 && (size_t)len < size)
        (void)snprintf(out + len, size - (size_t)len, "  %s/s  %u:%02u left",
                       dp_amount_bytes((uint64_t)((double)(all - done) / left_s), per_s),
                       (unsigned)left_s / 60, (unsigned)left_s % 60);
}

enum dp_status dp_amount_time(const char *text, const char *flag, uint64_t *out, struct dp_error *err)
{
    static const struct {
        const char *name;
        uint64_t s;
    } units[] = {{"min", 60}, {"h", 3600}, {"s", 1}, {"", 1}};
    size_t len = strlen(text);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t unit = strlen(units[i].name);
        char number[32];
        if (len <= unit || strcmp(text + len - unit, units[i].name) != 0 || len - unit >= sizeof number)
            continue;
        (void)snprintf(number, sizeof number, "%.*s", (int)(len - unit), text);
        if (dp_parse_u64(number, 1, 3600000 / units[i].s, flag, out, NULL) != DP_OK)
            break;
        *out *= units[i].s;
        return DP_OK;
    }
    return dp_fail(err, DP_ARGUMENT, "%s: '%.40s' is no time from 1s to 1000h (\"90s\", \"10min\", \"2h\")",
                   flag, text);
}
