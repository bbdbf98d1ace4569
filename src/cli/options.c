#include "cli/options.h"

#include <stdio.h>
#include <string.h>

static struct option_rule *rule_for(struct option_rule *rules, size_t count, const char *word, const char **ret_value)
{
    size_t len = strcspn(word, "=");
    for (size_t i = 0; i < count; i++) {
        if (strlen(rules[i].name) == len && strncmp(rules[i].name, word, len) == 0) {
            *ret_value = word[len] == '=' ? word + len + 1 : NULL;
            return &rules[i];
        }
    }
    return NULL;
}

static enum err complain(const char *command, const char *what, const char *word)
{
    fprintf(stderr, "reclaim %s: %s %s (reclaim %s --help tells what there is)\n", command, what, word, command);
    return ERR_INPUT;
}

enum err options_read(int argc, char **argv, struct option_rule *rules, size_t count, int words, int *ret_words)
{
    int kept = 0;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            if (kept >= words)
                return complain(argv[0], "does not know what to do with", argv[i]);
            argv[++kept] = argv[i];
            continue;
        }
        const char *value;
        struct option_rule *rule = rule_for(rules, count, argv[i], &value);
        if (!rule)
            return complain(argv[0], "has no option", argv[i]);
        if (rule->value)
            return complain(argv[0], "was given twice", rule->name);
        if (!rule->takes_value && value)
            return complain(argv[0], "takes no value for", rule->name);
        if (rule->takes_value && !value && i + 1 < argc)
            value = argv[++i];
        if (rule->takes_value && !value)
            return complain(argv[0], "wants a value behind", rule->name);
        rule->value = value ? value : "";
    }
    if (ret_words)
        *ret_words = kept;
    return OK;
}

int command_failed(const char *command, const struct why *why)
{
    fprintf(stderr, "reclaim %s: %s\n", command, why->text);
    return 1;
}
