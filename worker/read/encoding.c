#include "worker/read/encoding.h"

#include "common/base/text.h"

#include <errno.h>
#include <iconv.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES ((size_t)256 << 10)

static uint64_t ends_in(const unsigned char *at, const unsigned char *end)
{
    uint64_t ends = 0;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        ends++;
        at++;
    }
    return ends;
}

/* ---- decoded */

enum dp_status dp_encoding_open(struct dp_encoding *e, const char *name, struct dp_error *err)
{
    iconv_t found = strchr(name, '/') ? (iconv_t)-1 : iconv_open("UTF-8", name); /* "//" is not of the name */
    if (found == (iconv_t)-1)
        return dp_fail(
            err, DP_ARGUMENT,
            "no encoding is named '%.40s' (--encoding, data.encoding): latin1, cp1252 and utf-16 are "
            "some; 'iconv -l' lists them all",
            name);
    e->iconv = found;
    e->name = strdup(name);
    e->text = malloc(TEXT_BYTES);
    if (e->name && e->text)
        return DP_OK;
    dp_encoding_close(e);
    return dp_fail(err, DP_NOMEM, "no memory to decode a file");
}

void dp_encoding_close(struct dp_encoding *e)
{
    if (e->iconv)
        (void)iconv_close(e->iconv);
    free(e->name);
    free(e->text);
    *e = (struct dp_encoding){0};
}

static enum dp_status not_in(const struct dp_encoding *e, const char *path, unsigned char byte,
                             struct dp_error *err)
{
    return dp_fail(err, DP_DATA,
                   "%s:%" PRIu64 ": byte 0x%02x is no character of %s: name another encoding (--encoding, "
                   "data.encoding), or correct the file",
                   path, e->ends + 1, byte, e->name);
}

/* In a part, a byte of the block completes the character, or does not yet. */
enum dp_status dp_encoding_take(struct dp_encoding *e, const char *path, struct dp_error *err)
{
    bool part = e->part_len > 0;
    char *out = (char *)e->text, *in;
    size_t room = TEXT_BYTES, left;
    DP_ASSERT(e->iconv && e->left > 0);
    if (part) {
        e->part[e->part_len++] = (char)*e->from++;
        e->left--;
    }
    in = part ? e->part : (char *)(uintptr_t)e->from;
    left = part ? e->part_len : e->left;
    int why = iconv(e->iconv, &in, &left, &out, &room) == (size_t)-1 ? errno : 0;
    e->text_len = TEXT_BYTES - room;
    e->ends += ends_in(e->text, e->text + e->text_len);
    if (why == EILSEQ || (why == EINVAL && left >= sizeof e->part))
        return not_in(e, path, (unsigned char)*in, err);
    if (part) {
        memmove(e->part, in, left);
        e->part_len = left;
        return DP_OK;
    }
    e->from = (const unsigned char *)in;
    e->left = left;
    if (why == EINVAL) {
        memcpy(e->part, in, left);
        e->part_len = left;
        e->left = 0;
    }
    return DP_OK;
}

/* ---- checked */

/* Bytes 0x80 to 0x9f are quotes, dashes and the euro's sign in windows-1252, and no text in latin1. */
static const char *likely_of(const unsigned char *bytes, const unsigned char *end)
{
    const char *stop = (const char *)end;
    for (const char *at = (const char *)bytes; (at = dp_text_not_utf8(at, stop)) < stop; at++)
        if ((unsigned char)*at < 0xa0)
            return "windows-1252";
    return "latin1";
}

static enum dp_status not_utf8(const struct dp_encoding *e, const char *path, const unsigned char *bytes,
                               size_t len, struct dp_error *err)
{
    bool wide = e->ends == 0 && e->part_len == 0 && len >= 2 &&
                (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0);
    if (wide)
        return dp_fail(err, DP_DATA,
                       "%s: is UTF-16: name that (--encoding utf-16, data.encoding), or convert it (iconv -f "
                       "utf-16 -t utf-8)",
                       path);
    const char *likely = likely_of(bytes, bytes + len);
    return dp_fail(err, DP_DATA,
                   "%s:%" PRIu64 ": byte 0x%02x is no UTF-8: name the text's encoding (--encoding %s, "
                   "data.encoding), or convert it (iconv -f %s -t utf-8)",
                   path, e->ends + 1, bytes[0], likely, likely);
}

/* The bytes of a character that is cut by the block's end; 0: it has a wrong byte. */
static size_t cut_character(const unsigned char *at, const unsigned char *end)
{
    size_t have = (size_t)(end - at), bytes = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
    char whole[4] = {(char)*at, '\xbf', '\xbf', '\xbf'}, low[4] = {(char)*at, '\x80', '\x80', '\x80'};
    memcpy(whole, at, have < bytes ? have : bytes);
    memcpy(low, at, have < bytes ? have : bytes);
    return have < bytes && (dp_text_not_utf8(whole, whole + bytes) == whole + bytes ||
                            dp_text_not_utf8(low, low + bytes) == low + bytes)
               ? have
               : 0;
}

/* A part has no line end. */
enum dp_status dp_encoding_check(struct dp_encoding *e, const char *path, const unsigned char *bytes,
                                 size_t len, struct dp_error *err)
{
    const unsigned char *at = bytes, *end = bytes + len;
    while (e->part_len > 0 && at < end) {
        e->part[e->part_len++] = (char)*at++;
        const unsigned char *part = (const unsigned char *)e->part;
        if (dp_text_not_utf8(e->part, e->part + e->part_len) == e->part + e->part_len)
            e->part_len = 0;
        else if (cut_character(part, part + e->part_len) == 0)
            return not_utf8(e, path, part, e->part_len, err);
    }
    if (at == end)
        return DP_OK;
    const unsigned char *odd = (const unsigned char *)dp_text_not_utf8((const char *)at, (const char *)end);
    size_t cut = odd < end ? cut_character(odd, end) : 0;
    e->ends += ends_in(at, odd);
    if (odd < end && cut == 0)
        return not_utf8(e, path, odd, (size_t)(end - odd), err);
    memcpy(e->part, odd, cut);
    e->part_len = cut;
    return DP_OK;
}

enum dp_status dp_encoding_end(const struct dp_encoding *e, const char *path, struct dp_error *err)
{
    const unsigned char *part = (const unsigned char *)e->part;
    if (e->part_len == 0)
        return DP_OK;
    return e->iconv ? not_in(e, path, part[0], err) : not_utf8(e, path, part, e->part_len, err);
}
