/* `reclaim config`: the settings in force, and where each comes from. */
#include "cli/commands.h"

static const struct report_column columns[] = {
    {.name = "name"}, {.name = "value"}, {.name = "source"}, {.name = "where"}, {.name = "group", .where = IN_DATA},
};
static const struct report_shape shape = {columns, COUNT_OF(columns), true, "", NULL};

static void add_row(void *context, const struct setting_shown *setting)
{
    struct report *r = context;
    report_text(r, str_of(setting->name));
    report_text(r, setting->value);
    report_text(r, str_of(setting->source));
    report_text(r, str_of(setting->where));
    report_text(r, str_of(setting->group));
}

enum err config_command(struct command_context *c)
{
    AUTO(report) struct report *r = report_new(&shape, c->format);
    settings_each(c->settings, add_row, r);
    enum err e = report_print(r, &c->why);
    for (size_t i = 0; !e && i < c->settings->warnings.count; i++)
        fprintf(stderr, "reclaim config: %s\n", c->settings->warnings.at[i]);
    return e;
}
