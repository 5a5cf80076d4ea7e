#include "common/vocab/tokenizer.h"

#include "common/base/hash.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Ranges of characters from U+0080 on that are no letters or digits: punctuation, symbols, blanks. */
static const uint32_t between[][2] = {
    {0x80, 0xa9},       {0xab, 0xb1},     {0xb4, 0xb4},     {0xb6, 0xb8},     {0xbb, 0xbf},
    {0xd7, 0xd7},       {0xf7, 0xf7},     {0x2b9, 0x2df},   {0x37e, 0x37e},   {0x387, 0x387},
    {0x55a, 0x55f},     {0x589, 0x58a},   {0x5be, 0x5be},   {0x60c, 0x60d},   {0x61b, 0x61f},
    {0x66a, 0x66d},     {0x6d4, 0x6d4},   {0x964, 0x965},   {0x1680, 0x1680}, {0x2000, 0x206f},
    {0x20a0, 0x20cf},   {0x2190, 0x245f}, {0x2500, 0x2bff}, {0x2e00, 0x2e7f}, {0x3000, 0x3004},
    {0x3008, 0x3020},   {0x3030, 0x3030}, {0x30fb, 0x30fb}, {0xfe10, 0xfe6f}, {0xfeff, 0xfeff},
    {0xff01, 0xff0f},   {0xff1a, 0xff20}, {0xff3b, 0xff40}, {0xff5b, 0xff65}, {0xffe0, 0xffff},
    {0x1f000, 0x1faff},
};

/* Capitals: `step` 1: each is `add` below its small letter; 2: every other one is. */
static const struct {
    uint32_t first, last, step;
    int32_t add;
} capitals[] = {
    {0xc0, 0xd6, 1, 32},    {0xd8, 0xde, 1, 32},        {0x100, 0x12e, 2, 1},   {0x130, 0x130, 1, -199},
    {0x132, 0x136, 2, 1},   {0x139, 0x147, 2, 1},       {0x14a, 0x176, 2, 1},   {0x178, 0x178, 1, -121},
    {0x179, 0x17d, 2, 1},   {0x1a0, 0x1a4, 2, 1},       {0x1af, 0x1af, 1, 1},   {0x1cd, 0x1db, 2, 1},
    {0x1de, 0x1ee, 2, 1},   {0x1f8, 0x21e, 2, 1},       {0x222, 0x232, 2, 1},   {0x386, 0x386, 1, 38},
    {0x388, 0x38a, 1, 37},  {0x38c, 0x38c, 1, 64},      {0x38e, 0x38f, 1, 63},  {0x391, 0x3a1, 1, 32},
    {0x3a3, 0x3ab, 1, 32},  {0x400, 0x40f, 1, 80},      {0x410, 0x42f, 1, 32},  {0x460, 0x480, 2, 1},
    {0x48a, 0x4be, 2, 1},   {0x4c1, 0x4cd, 2, 1},       {0x4d0, 0x52e, 2, 1},   {0x531, 0x556, 1, 48},
    {0x1e00, 0x1e94, 2, 1}, {0x1e9e, 0x1e9e, 1, -7615}, {0x1ea0, 0x1efe, 2, 1}, {0xff21, 0xff3a, 1, 32},
};

static bool is_between(uint32_t c)
{
    for (size_t i = 0; i < COUNT(between) && between[i][0] <= c; i++)
        if (c <= between[i][1])
            return true;
    return false;
}

static uint32_t small(uint32_t c)
{
    for (size_t i = 0; i < COUNT(capitals) && capitals[i].first <= c; i++)
        if (c <= capitals[i].last && (c - capitals[i].first) % capitals[i].step == 0)
            return (uint32_t)((int32_t)c + capitals[i].add);
    return c;
}

/* The bytes of the character that begins with this one, by UTF-8; 1 also where it begins none. */
static uint32_t length(unsigned char first)
{
    return first >= 0xc2 && first < 0xe0   ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xf0 && first < 0xf5 ? 4
                                           : 1;
}

static void add(struct dp_tokenizer *t, const unsigned char *bytes, uint32_t len)
{
    if (!t->begun) {
        t->begun = true;
        t->first = !t->inside;
        t->inside = true;
        t->hash = DP_HASH_BEGIN;
        t->len = 0;
    }
    t->hash = dp_hash_bytes(t->hash, bytes, len);
    if (len <= sizeof t->text - t->len) {
        memcpy(t->text + t->len, bytes, len);
        t->len += len;
    }
}

/* Ends the word under way, if one is. */
static bool end(struct dp_tokenizer *t)
{
    bool ended = t->begun;
    t->begun = false;
    return ended;
}

/* A complete character of two bytes or more. Returns whether it ends a word. */
static bool take_wide(struct dp_tokenizer *t, const unsigned char *at, uint32_t len)
{
    uint32_t c = at[0] & (0xffu >> (len + 1));
    for (uint32_t i = 1; i < len; i++)
        c = c << 6 | (at[i] & 0x3fu);
    uint32_t low = small(c);
    unsigned char out[4] = {at[0], at[1], len > 2 ? at[2] : 0, len > 3 ? at[3] : 0};
    if (is_between(c))
        return end(t);
    if (low < 0x80) { /* of a dotted I */
        out[0] = (unsigned char)low;
        len = 1;
    } else if (low < 0x800) { /* a sharp s may become shorter */
        out[0] = (unsigned char)(0xc0 | low >> 6);
        out[1] = (unsigned char)(0x80 | (low & 0x3f));
        len = 2;
    } else if (low != c) {
        out[1] = (unsigned char)(0x80 | (low >> 6 & 0x3f));
        out[2] = (unsigned char)(0x80 | (low & 0x3f));
    }
    add(t, out, len);
    return false;
}

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Adds bytes to a character of several, until it is complete or its bytes do not fit. Returns how
 * many of `bytes` were taken. */
static size_t take_part(struct dp_tokenizer *t, const unsigned char *bytes, size_t len, bool *word)
{
    size_t at = 0;
    while (at < len && t->parts < length(t->part[0]) && (bytes[at] & 0xc0) == 0x80)
        t->part[t->parts++] = bytes[at++];
    if (t->parts == length(t->part[0]))
        *word = t->parts > 1 ? take_wide(t, t->part, t->parts) : (add(t, t->part, 1), false);
    else if (at == len)
        return at;
    else
        add(t, t->part, t->parts);
    t->parts = 0;
    return at;
}

size_t dp_tokenizer_next(struct dp_tokenizer *t, const unsigned char *bytes, size_t len, bool *word)
{
    size_t at = 0;
    *word = false;
    while (at < len && !*word) {
        unsigned char c = bytes[at];
        if (t->parts > 0) {
            at += take_part(t, bytes + at, len - at, word);
            continue;
        }
        at++;
        if (t->kind == DP_WORD_SIMPLE && c >= 0x80) {
            t->part[t->parts++] = c;
            if (length(c) == 1)
                at += take_part(t, bytes + at, 0, word);
            continue;
        }
        if (t->kind == DP_WORD_SIMPLE && c >= 'A' && c <= 'Z')
            c = (unsigned char)(c | 0x20);
        bool inside = t->kind == DP_WORD_SIMPLE ? is_letter(c) : !(c == ' ' || (c >= '\t' && c <= '\r'));
        if (inside)
            add(t, &c, 1);
        else
            *word = end(t);
        if (c == '\n' || c == '\r')
            t->inside = false;
    }
    return at;
}

bool dp_tokenizer_end(struct dp_tokenizer *t)
{
    if (t->parts > 0)
        add(t, t->part, t->parts);
    t->parts = 0;
    return end(t);
}

bool dp_tokenizer_word(enum dp_word_rule kind, const char *text, char *out, size_t size)
{
    struct dp_tokenizer t = {.kind = kind};
    size_t len = strlen(text), at = 0, words = 0, have = 0;
    for (bool last = false, word; !last;) {
        last = at == len;
        if (last)
            word = dp_tokenizer_end(&t);
        else
            at += dp_tokenizer_next(&t, (const unsigned char *)text + at, len - at, &word);
        if (word && words++ == 0 && t.len < size) {
            memcpy(out, t.text, t.len);
            have = t.len;
        }
    }
    if (words != 1 || have == 0)
        return false;
    out[have] = '\0';
    return true;
}
