#include "common/base/wait.h"

static const struct row {
    const char *name, *text;
    enum dp_wait_sign sign;
} rows[] = {
#define DP_WAIT_ROW(name, number, sign, text) [number] = {#name, text, DP_SIGN_##sign},
    DP_WAIT_MAP(DP_WAIT_ROW)
#undef DP_WAIT_ROW
};

static const struct row *row_of(enum dp_wait_reason reason)
{
    return &rows[dp_wait_from_number((uint32_t)reason)];
}

const char *dp_wait_name(enum dp_wait_reason reason)
{
    return row_of(reason)->name;
}

const char *dp_wait_text(enum dp_wait_reason reason)
{
    return row_of(reason)->text;
}

enum dp_wait_sign dp_wait_sign(enum dp_wait_reason reason)
{
    return row_of(reason)->sign;
}

enum dp_wait_reason dp_wait_from_number(uint32_t number)
{
    return number < sizeof rows / sizeof rows[0] && rows[number].text ? (enum dp_wait_reason)number
                                                                      : DP_WAIT_NONE;
}

bool dp_wait_same(const struct dp_wait *a, const struct dp_wait *b)
{
    return a->reason == b->reason && a->subject == b->subject && a->done == b->done && a->total == b->total;
}
