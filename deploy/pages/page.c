#include "deploy/pages/page.h"

#include "common/base/status.h"
#include "common/base/text.h"
#include "deploy/cli/progress.h"
#include "deploy/pages/colour.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define HEADINGS_MAX 16u
#define APART_MAX    1e15 /* whole numbers above have digits that mean nothing */

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c1e21;--paper:#fff;--faint:#5c6067;--grid:#dcdfe3;--box:#f4f5f7}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e6ea;--paper:#16181b;--faint:#a2a7af;--grid:#3a3e44;"
    "--box:#202327}}\n"
    "body{margin:0 auto;max-width:1240px;padding:12px 16px 40px;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}\n"
    "h1{font-size:1.6em;line-height:1.2;margin:.6em 0 .2em}\nh2{font-size:1.2em;margin:1.8em 0 .4em;"
    "border-bottom:1px solid var(--grid)}\n"
    "p{margin:.5em 0;max-width:52em}\n.sub,.note,footer{color:var(--faint)}\n.note,footer{font-size:.9em}\n"
    ".found{font-size:1.08em}\n.warn{border-left:4px solid #d55e00;background:var(--box);padding:.4em .8em}\n"
    "figure{margin:0;min-width:0}\nfigcaption{font-weight:600;margin:.4em 0 0}\n"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));gap:12px "
    "28px;align-items:end;"
    "margin:.6em "
    "0}\n.plots>div{align-self:center;min-width:0}.top>div{align-self:start}\nfigure>svg{display:block;width:"
    "100%;max-width:680px;"
    "height:auto}\n"
    ".key{margin:.1em 0;font-size:.9em}\n.key span{margin-right:1.1em;white-space:nowrap}\n"
    ".key svg{display:inline-block;width:2.3em;height:.95em;margin-right:.4em;vertical-align:-.12em}\n"
    ".defs{position:absolute;width:0;height:0}figcaption{display:inline-block;margin-right:.8em}\n"
    "figure>a,.files a{font-size:.85em;color:var(--faint)}\n"
    ".wide{overflow-x:auto;margin:.5em "
    "0}\ntable{border-collapse:collapse;font-size:.93em;overflow-wrap:normal}\n"
    "th,td{padding:.2em .7em;border-bottom:1px solid var(--grid);text-align:right;vertical-align:top;"
    "font-variant-numeric:tabular-nums}\nth{font-weight:600;vertical-align:bottom}\n"
    "th.t,td.t{text-align:left}td.v{text-align:left;overflow-wrap:anywhere}\nth:first-child,td:first-child{"
    "padding-left:0}td.t:first-child{white-space:nowrap}\n"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--box);padding:.6em .8em;"
    "font:.9em/1.45 ui-monospace,monospace}\nsummary{cursor:pointer;color:var(--faint);margin:.4em 0}\n"
    "footer{margin-top:2.5em;border-top:1px solid var(--grid);padding-top:.5em}\n";

char *dp_page_text(void (*put)(FILE *to, const void *context), const void *context)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (to)
        put(to, context);
    if (to && fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

void dp_page_escape(FILE *to, const char *text)
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

void dp_page_link(FILE *to, const char *link, const char *what)
{
    fputs("<a href=\"", to);
    dp_page_escape(to, link);
    fputs("\">", to);
    dp_page_escape(to, what);
    fputs("</a>\n", to);
}

/* <name class="kind">text</name> */
static void put_element(FILE *to, const char *name, const char *kind, const char *text)
{
    fprintf(to, "<%s", name);
    if (kind)
        fprintf(to, " class=\"%s\"", kind);
    fputc('>', to);
    dp_page_escape(to, text);
    fprintf(to, "</%s>\n", name);
}

void dp_page_begin(FILE *to, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
          to);
    put_element(to, "title", NULL, title);
    fprintf(to, "<style>\n%s", style);
    fputs("</style>\n</head>\n<body>\n<svg class=\"defs\" aria-hidden=\"true\">\n", to);
    dp_colour_put_hatches(to, &dp_palette_page);
    fputs("</svg>\n", to);
    put_element(to, "h1", NULL, title);
}

void dp_page_end(FILE *to, const char *with)
{
    put_element(to, "footer", NULL, with);
    fputs("</body>\n</html>\n", to);
}

void dp_page_section(FILE *to, const char *heading)
{
    put_element(to, "h2", NULL, heading);
}

void dp_page_paragraph(FILE *to, const char *kind, const char *text)
{
    put_element(to, "p", kind, text);
}

void dp_page_command(FILE *to, const char *text)
{
    put_element(to, "pre", NULL, text);
}

const char *dp_page_number(double value, int digits, char out[DP_PAGE_NUMBER_BYTES])
{
    if (!isfinite(value))
        (void)snprintf(out, DP_PAGE_NUMBER_BYTES, "-");
    else if (fabs(value) >= APART_MAX)
        (void)snprintf(out, DP_PAGE_NUMBER_BYTES, "%.4g", value);
    else if (digits < 0)
        (void)dp_cli_number(value, out, DP_PAGE_NUMBER_BYTES);
    else
        (void)snprintf(out, DP_PAGE_NUMBER_BYTES, "%.*f", digits, value);
    if (out[0] == '-' && strspn(out + 1, "0.") == strlen(out + 1) && out[1]) /* it was rounded to 0 */
        memmove(out, out + 1, strlen(out));
    return out;
}

void dp_page_table_of(FILE *to, const char *const *headings, size_t count, size_t texts)
{
    fputs("<div class=\"wide\"><table>\n<thead><tr>", to);
    for (size_t i = 0; i < count; i++) {
        fputs(i < texts ? "<th class=\"t\">" : "<th>", to);
        dp_page_escape(to, headings[i]);
        fputs("</th>", to);
    }
    fputs("</tr></thead>\n<tbody>", to);
}

void dp_page_table_begin(FILE *to, size_t texts, ...)
{
    const char *headings[HEADINGS_MAX], *heading;
    size_t count = 0;
    va_list values;
    va_start(values, texts);
    while ((heading = va_arg(values, const char *))) {
        DP_ASSERT(count < HEADINGS_MAX);
        headings[count++] = heading;
    }
    va_end(values);
    dp_page_table_of(to, headings, count, texts);
}

void dp_page_row(FILE *to)
{
    fputs("\n<tr>", to);
}

void dp_page_row_end(FILE *to)
{
    fputs("</tr>", to);
}

void dp_page_text_cell(FILE *to, const char *text)
{
    fputs("<td class=\"t\">", to);
    dp_page_escape(to, text);
    fputs("</td>", to);
}

void dp_page_long_cell(FILE *to, const char *text)
{
    fputs("<td class=\"v\">", to);
    dp_page_escape(to, text);
    fputs("</td>", to);
}

void dp_page_number_cell(FILE *to, double value, int digits)
{
    char number[DP_PAGE_NUMBER_BYTES];
    fprintf(to, "<td>%s</td>", dp_page_number(value, digits, number));
}

void dp_page_row_of(FILE *to, const char *cells, ...)
{
    va_list values;
    va_start(values, cells);
    dp_page_row(to);
    for (const char *cell = cells; *cell; cell++)
        if (*cell == 't')
            dp_page_text_cell(to, va_arg(values, const char *));
        else if (*cell == 'v')
            dp_page_long_cell(to, va_arg(values, const char *));
        else
            dp_page_number_cell(to, va_arg(values, double), *cell == 'n' ? -1 : *cell - '0');
    dp_page_row_end(to);
    va_end(values);
}

void dp_page_table_end(FILE *to)
{
    fputs("\n</tbody></table></div>\n", to);
}

void dp_page_fold_begin(FILE *to, const char *what, bool open)
{
    fputs(open ? "<details open>" : "<details>", to);
    put_element(to, "summary", NULL, what);
}

void dp_page_fold_end(FILE *to)
{
    fputs("</details>\n", to);
}

void dp_page_figures_begin(FILE *to)
{
    fputs("<div class=\"plots\">\n", to);
}

void dp_page_columns_begin(FILE *to)
{
    fputs("<div class=\"plots top\">\n", to);
}

void dp_page_figures_end(FILE *to)
{
    fputs("</div>\n", to);
}
