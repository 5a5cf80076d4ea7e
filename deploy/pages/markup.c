#include "deploy/pages/markup.h"

#include "common/base/text.h"

#include <stdlib.h>
#include <string.h>

void dp_markup_escape(FILE *to, const char *text)
{
    char *clean = strdup(text);
    if (!clean)
        return;
    dp_text_clean(clean);
    for (const char *c = clean; *c; c++) {
        switch (*c) {
        case '&':
            fputs("&amp;", to);
            break;
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        case '\'':
            fputs("&#39;", to);
            break;
        default:
            fputc(*c, to);
        }
    }
    free(clean);
}

void dp_markup_link(FILE *to, const char *link, const char *what)
{
    fputs("<a href=\"", to);
    dp_markup_escape(to, link);
    fputs("\">", to);
    dp_markup_escape(to, what);
    fputs("</a>\n", to);
}
