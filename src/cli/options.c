#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct option_rule config_option = {"--config", "FILE", "settings from an INI file; the environment wins"};
const struct option_rule format_option = {"--format", "FORMAT", "of a list: table, csv or json (table)"};

const char *option(const struct command_context *c, const char *name)
{
    const struct option_rule *rules = c->command->options;
    for (int i = 0; rules && rules[i].name; i++)
        if (strcmp(rules[i].name, name) == 0)
            return c->options[i];
    return NULL;
}

const char *word(const struct command_context *c, int at)
{
    return at < c->word_count ? c->words[at] : "";
}

bool is_reason(const char *text, size_t max)
{
    return str_trim(str_of(text)).len > 0 && strlen(text) <= max && str_is_utf8(str_of(text));
}

static bool is_named(const struct option_rule *rule, const char *argument)
{
    size_t len = strcspn(argument, "=");
    return strlen(rule->name) == len && strncmp(rule->name, argument, len) == 0;
}

/* The rule for an argument, and where its value goes; NULL when the command has no such option. */
static const struct option_rule *rule_for(struct command_context *c, const char *argument, const char **format,
                                          const char ***ret_place)
{
    const struct option_rule *rules = c->command->options;
    for (int i = 0; rules && rules[i].name; i++) {
        *ret_place = &c->options[i];
        if (is_named(&rules[i], argument))
            return &rules[i];
    }
    *ret_place = &c->config;
    if ((c->needs & NEEDS_CONFIG) && is_named(&config_option, argument))
        return &config_option;
    *ret_place = format;
    return (c->needs & NEEDS_FORMAT) && is_named(&format_option, argument) ? &format_option : NULL;
}

static enum err refuse(const struct command_context *c, const char *what, const char *argument)
{
    const char *name = c->command->name;
    fprintf(stderr, "reclaim %s: %s %s (reclaim %s --help lists its options)\n", name, what, argument, name);
    return ERR_INPUT;
}

static enum err read_format(struct command_context *c, const char *format)
{
    c->format_given = format != NULL;
    if (!format || report_format_named(format, &c->format) == OK)
        return OK;
    fprintf(stderr, "reclaim %s: \"%s\" is not table, csv or json\n", c->command->name, format);
    return ERR_INPUT;
}

enum err options_read(struct command_context *c, int argc, char **argv)
{
    const char *format = NULL;
    c->words = argv + 1;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            if (c->word_count >= c->command->words)
                return refuse(c, "unexpected argument", argv[i]);
            c->words[c->word_count++] = argv[i];
            continue;
        }
        const char **place, *equals = strchr(argv[i], '=');
        const struct option_rule *rule = rule_for(c, argv[i], &format, &place);
        if (!rule)
            return refuse(c, "has no option", argv[i]);
        if (*place)
            return refuse(c, "was given twice:", rule->name);
        if (!rule->value && equals)
            return refuse(c, "takes no value for", rule->name);
        if (rule->value && !equals && i + 1 == argc)
            return refuse(c, "wants a value behind", rule->name);
        *place = !rule->value ? "" : equals ? equals + 1 : argv[++i];
    }
    return read_format(c, format);
}
