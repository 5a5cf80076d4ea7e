#include "common/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the character, and its number in *code; 0: there is none. */
static size_t decode(const char *from, const char *end, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)from;
    size_t bytes = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    *code = at[0];
    if (at[0] < 0x80)
        return 1;
    if (at[0] < 0xc2 || at[0] > 0xf4 || (size_t)(end - from) < bytes)
        return 0;
    *code &= 0x7fu >> bytes;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3fu);
    }
    return *code >= least[bytes] && *code <= 0x10ffff && (*code < 0xd800 || *code > 0xdfff) ? bytes : 0;
}

size_t dp_text_character(const char *at, const char *end)
{
    uint32_t code = 0;
    size_t bytes = at < end ? decode(at, end, &code) : 0;
    return code < 0x20 || (code >= 0x7f && code < 0xa0) ? 0 : bytes;
}

const char *dp_text_not_utf8(const char *at, const char *end)
{
    uint64_t word = 0;
    uint32_t code;
    while (at < end) {
        /* Most text is ASCII: eight bytes at a time. */
        while (end - at >= (ptrdiff_t)sizeof word &&
               (memcpy(&word, at, sizeof word), !(word & UINT64_C(0x8080808080808080))))
            at += sizeof word;
        size_t bytes = at < end ? decode(at, end, &code) : 0;
        if (bytes == 0)
            return at;
        at += bytes;
    }
    return end;
}

void dp_text_clean(char *text)
{
    const char *end = text + strlen(text);
    for (char *at = text; at < end;) {
        size_t bytes = dp_text_character(at, end);
        if (bytes == 0)
            *at = '?';
        at += bytes == 0 ? 1 : bytes;
    }
}

void dp_text_mend_end(char *text)
{
    size_t len = strlen(text), back = 0;
    while (back < 3 && back < len && ((unsigned char)text[len - 1 - back] & 0xc0) == 0x80)
        back++;
    uint32_t code;
    const char *last = back < len ? text + len - 1 - back : text;
    if (back < len && (unsigned char)*last >= 0xc2 && decode(last, text + len, &code) == 0)
        text[last - text] = '\0';
}

const char *dp_text_grouped(uint64_t value, char out[32])
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, value), to = 0;
    for (int i = 0; i < n; i++) {
        out[to++] = digits[i];
        if ((n - 1 - i) % 3 == 0 && i + 1 < n)
            out[to++] = ',';
    }
    out[to] = '\0';
    return out;
}
