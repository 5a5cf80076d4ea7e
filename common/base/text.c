#include "common/base/text.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at `at`, 0 if it is none or a control character. RFC 3629: shortest form, no surrogates. */
static size_t character(const unsigned char *at)
{
    if (at[0] < 0x80)
        return at[0] >= 0x20 && at[0] != 0x7f;
    size_t bytes = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    static const uint32_t least[] = {0, 0, 0xa0 /* 0x80 to 0x9f are controls */, 0x800, 0x10000};
    uint32_t code = at[0] & (0x7fu >> bytes);
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3fu);
    }
    return code >= least[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? bytes : 0;
}

void dp_text_clean(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at;) {
        size_t bytes = character(at);
        if (bytes == 0)
            *at = '?';
        at += bytes == 0 ? 1 : bytes;
    }
}
