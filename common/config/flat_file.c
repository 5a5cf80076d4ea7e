#include "common/config/flat_file.h"

#include "common/config/cluster_text.h"

#include <libconfig.h>
#include <stdlib.h>

#define NUMBER_BYTES 48

/* *text: NULL: a switch. number: for what is no text. */
static enum dp_status value_of(const config_setting_t *setting, const char **text, char number[NUMBER_BYTES],
                               struct dp_error *err)
{
    *text = number;
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_STRING:
        *text = config_setting_get_string(setting);
        return DP_OK;
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        (void)snprintf(number, NUMBER_BYTES, "%lld", config_setting_get_int64(setting));
        return DP_OK;
    case CONFIG_TYPE_FLOAT:
        (void)snprintf(number, NUMBER_BYTES, "%.15g", config_setting_get_float(setting));
        return DP_OK;
    case CONFIG_TYPE_BOOL:
        *text = NULL;
        return DP_OK;
    default:
        return dp_fail(err, DP_ARGUMENT, "'%s' must be a text, a number, or true",
                       config_setting_name(setting));
    }
}

enum dp_status dp_flat_file_read(const char *path, dp_flat_visit *visit, void *context, struct dp_error *err)
{
    config_t config;
    char *text = NULL;
    enum dp_status st = dp_cluster_text(path, &text, err);
    if (st != DP_OK)
        return st;
    config_init(&config);
    config_set_options(&config, 0);
    if (config_read_string(&config, text) != CONFIG_TRUE)
        st = dp_fail(err, DP_ARGUMENT, "%.300s:%d: %s (a line is such as: epochs = 20;)", path,
                     config_error_line(&config), config_error_text(&config));
    free(text);
    const config_setting_t *root = config_root_setting(&config);
    for (int i = 0; st == DP_OK && i < config_setting_length(root); i++) {
        const config_setting_t *one = config_setting_get_elem(root, (unsigned)i);
        char number[NUMBER_BYTES];
        const char *value;
        st = value_of(one, &value, number, err);
        bool off = st == DP_OK && !value && !config_setting_get_bool(one);
        if (st == DP_OK && !off)
            st = visit(context, config_setting_name(one), value, err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "%.300s:%u", path, (unsigned)config_setting_source_line(one));
    }
    config_destroy(&config);
    return st;
}

void dp_flat_file_line(const char *name, const char *text, FILE *file)
{
    config_t config;
    config_init(&config);
    config_setting_t *one =
        config_setting_add(config_root_setting(&config), name, text ? CONFIG_TYPE_STRING : CONFIG_TYPE_BOOL);
    if (one && (text ? config_setting_set_string(one, text) : config_setting_set_bool(one, 1)))
        config_write(&config, file);
    config_destroy(&config);
}
