#include "common/base/status.h"

#include "common/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status_row {
    int number;
    enum dp_status_class class;
    const char *name;
    const char *text;
};

static const struct status_row rows[] = {
#define DP_STATUS_ROW(name, number, class, text) {number, DP_CLASS_##class, #name, text},
    DP_STATUS_MAP(DP_STATUS_ROW)
#undef DP_STATUS_ROW
};

static const struct status_row *row_of(int status)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number == status)
            return &rows[i];
    return NULL;
}

const char *dp_status_name(int status)
{
    const struct status_row *row = row_of(status);
    return row ? row->name : "UNKNOWN";
}

const char *dp_status_text(int status)
{
    const struct status_row *row = row_of(status);
    return row ? row->text : "status unknown to this build";
}

enum dp_status_class dp_status_class(int status)
{
    const struct status_row *row = row_of(status);
    return row ? row->class : DP_CLASS_FATAL;
}

enum dp_status dp_status_answered(enum dp_status status)
{
    return dp_status_class((int)status) == DP_CLASS_LOCAL ? DP_AGAIN : status;
}

struct dp_wait dp_wait_answered(const struct dp_error *err)
{
    enum dp_status_class class = dp_status_class((int)err->status);
    bool lacks = err->wait.reason == DP_WAIT_NONE && (class == DP_CLASS_LOCAL || class == DP_CLASS_FATAL);
    return lacks ? (struct dp_wait){.reason = err->status == DP_FULL ? DP_WAIT_DISK : DP_WAIT_FAULT}
                 : err->wait;
}

enum dp_status dp_status_from_number(int number)
{
    return row_of(number) ? (enum dp_status)number : DP_INTERNAL;
}

static void set_text(struct dp_error *err, const char *format, va_list args)
{
    if (vsnprintf(err->text, sizeof err->text, format, args) >= (int)sizeof err->text)
        dp_text_mend_end(err->text);
}

enum dp_status dp_fail(struct dp_error *err, enum dp_status why, const char *format, ...)
{
    if (!err)
        return why;
    err->status = why;
    err->wait = (struct dp_wait){0};
    va_list args;
    va_start(args, format);
    set_text(err, format, args);
    va_end(args);
    return why;
}

enum dp_status dp_fail_wait(struct dp_error *err, enum dp_status why, struct dp_wait wait, const char *format,
                            ...)
{
    if (!err)
        return why;
    err->status = why;
    err->wait = wait;
    va_list args;
    va_start(args, format);
    set_text(err, format, args);
    va_end(args);
    return why;
}

/* Appends as much of `more` as fits behind the first `at` characters. */
static size_t append(struct dp_error *err, size_t at, const char *more)
{
    size_t room = sizeof err->text - 1 - at, n = strlen(more);
    n = n < room ? n : room;
    memcpy(err->text + at, more, n);
    err->text[at + n] = '\0';
    if (n == room)
        dp_text_mend_end(err->text);
    return strlen(err->text);
}

enum dp_status dp_wrap(struct dp_error *err, enum dp_status why, const char *format, ...)
{
    if (!err)
        return why;
    struct dp_error inner = *err;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    size_t at = n < 0 ? 0 : (size_t)n < sizeof err->text ? (size_t)n : sizeof err->text - 1;
    at = append(err, at, ": ");
    (void)append(err, at, inner.text[0] ? inner.text : dp_status_text((int)why));
    err->status = why;
    return why;
}

__attribute__((noreturn)) void dp_assert_failed(const char *fact, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: internal error: %s does not hold\n", file, line, fact);
    abort();
}

int dp_status_exit(enum dp_status status)
{
    if (status == DP_OK)
        return DP_EXIT_DONE;
    return dp_status_class((int)status) == DP_CLASS_RETRY ? DP_EXIT_RETRY : DP_EXIT_FAILED;
}
