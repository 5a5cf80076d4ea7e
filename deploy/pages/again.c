#include "deploy/pages/again.h"

#include "deploy/pages/page.h"
#include "deploy/pages/summary.h"
#include "deploy/run/run_provenance.h"

#include <stdlib.h>

static void put_row(FILE *to, const char *name, const char *value)
{
    dp_page_row(to);
    dp_page_text_cell(to, name);
    dp_page_long_cell(to, value[0] ? value : "not known");
    dp_page_row_end(to);
}

/* "libzmq 4.3.4, rocksdb 7.8.3, ..." */
static char *libraries_of(const json_t *build)
{
    char *text = NULL;
    size_t size = 0;
    const char *before = "", *name;
    json_t *version;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    json_object_foreach(json_object_get(build, "libraries"), name, version)
    {
        fprintf(to, "%s%s %s", before, name, json_string_value(version) ? json_string_value(version) : "");
        before = ", ";
    }
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

static void put_build(struct dp_page_maker *maker, const json_t *build)
{
    static const char *const headings[] = {"build", "value"};
    char *libraries = libraries_of(build);
    if (json_is_object(build) && libraries) {
        dp_page_table_begin(maker->to, headings, 2, 2);
        put_row(maker->to, "commit", dp_training_text(build, "commit"));
        put_row(maker->to, "build type", dp_training_text(build, "type"));
        put_row(maker->to, "compiler", dp_training_text(build, "compiler"));
        put_row(maker->to, "libraries", libraries);
        dp_page_table_end(maker->to);
    }
    free(libraries);
}

static void put_files(struct dp_page_maker *maker, const json_t *files)
{
    static const char *const headings[] = {"file of", "path", "bytes", "BLAKE2b-128"};
    FILE *to = maker->to;
    if (json_array_size(files) == 0)
        return;
    dp_page_table_begin(to, headings, 4, 2);
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *one = json_array_get(files, i);
        dp_page_row(to);
        dp_page_text_cell(to, dp_training_text(one, "flag"));
        dp_page_long_cell(to, dp_training_text(one, "path"));
        dp_page_number_cell(to, dp_training_number(one, "bytes", NULL), -1);
        dp_page_text_cell(to, dp_training_text(one, "blake2b"));
        dp_page_row_end(to);
    }
    dp_page_table_end(to);
}

void dp_page_again(struct dp_page_maker *maker, const json_t *origin, const char *directory)
{
    char *command = dp_origin_again(origin, directory);
    dp_page_section(maker->to, "How to make it again");
    if (command)
        dp_page_command(maker->to, command);
    else
        dp_page_paragraph(maker->to, NULL,
                          "The directory does not keep the command: it is of an older version, or the "
                          "processes were started manually. The settings are below.");
    free(command);
    dp_page_maker_text(maker, NULL, dp_summary_origin(origin));
    dp_page_columns_begin(maker->to);
    put_files(maker, json_object_get(origin, "files"));
    put_build(maker, json_object_get(origin, "build"));
    dp_page_figures_end(maker->to);
}
