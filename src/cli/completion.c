/* `reclaim completion bash|zsh|fish`: a script for the shell, made from the table of commands. */
#include <stdio.h>
#include <string.h>

#include "cli/help.h"
#include "cli/options.h"

typedef void option_handler(void *context, const struct command *command, const struct option_rule *rule);

/* The command's own options and those that it shares with others. */
static void each_option(const struct command *command, option_handler *each, void *context)
{
    const struct option_rule *own = command->options;
    for (int i = 0; own && own[i].name; i++)
        each(context, command, &own[i]);
    if (command->needs & NEEDS_FORMAT)
        each(context, command, &format_option);
    if (command->needs & NEEDS_CONFIG)
        each(context, command, &config_option);
}

/* What can stand behind an option: "customer|user" → "customer user"; "" when it is a text of any kind. */
static struct str choices_of(const struct option_rule *rule, char into[128])
{
    size_t len = 0;
    if (rule == &format_option)
        return STR("table csv json");
    for (const char *at = rule->value; at && *at && len < 127; at++) {
        if ((*at < 'a' || *at > 'z') && *at != '|')
            return STR("");
        into[len++] = *at == '|' ? ' ' : *at;
    }
    return (struct str){into, len};
}

static bool takes_path(const struct option_rule *rule)
{
    return rule->value && (strcmp(rule->value, "FILE") == 0 || strcmp(rule->value, "DIR") == 0);
}

/* Single quotes around, and no line end within. */
static void print_quoted(const char *text)
{
    putchar('\'');
    for (; *text && *text != '\n'; text++)
        if (*text == '\'')
            printf("'\\''");
        else
            putchar(*text);
    putchar('\'');
}

static void print_bash_option(void *context, const struct command *command, const struct option_rule *rule)
{
    (void)context, (void)command;
    printf(" %s", rule->name);
}

/* The table's options have one meaning a command. */
static void print_bash_value(void *context, const struct command *command, const struct option_rule *rule)
{
    (void)context;
    char choices[128];
    struct str words = choices_of(rule, choices);
    if (takes_path(rule))
        printf("    %s:%s) COMPREPLY=($(compgen -%c -- \"$current\")); return ;;\n", command->name, rule->name,
               strcmp(rule->value, "DIR") == 0 ? 'd' : 'f');
    else if (rule->value)
        printf("    %s:%s) COMPREPLY=($(compgen -W '%.*s' -- \"$current\")); return ;;\n", command->name, rule->name,
               STR_ARGS(words));
}

static void print_bash(const struct command *commands, size_t count)
{
    printf("# bash completion for reclaim: source it, or put it into /usr/share/bash-completion/completions/reclaim\n"
           "_reclaim() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} words=\n"
           "    if ((COMP_CWORD == 1)); then\n        words='--help --version");
    for (size_t i = 0; i < count; i++)
        printf(" %s", commands[i].name);
    printf("'\n        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n        return\n    fi\n"
           "    case ${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD - 1]} in\n");
    for (size_t i = 0; i < count; i++)
        each_option(&commands[i], print_bash_value, NULL);
    printf("    esac\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < count; i++) {
        printf("    %s) words='%s --help", commands[i].name, commands[i].verbs ? commands[i].verbs : "");
        each_option(&commands[i], print_bash_option, NULL);
        printf("' ;;\n");
    }
    printf("    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\ncomplete -F _reclaim reclaim\n");
}

/* In zsh's specifications brackets and colons have to be escaped. */
static void print_zsh_option(void *context, const struct command *command, const struct option_rule *rule)
{
    (void)context, (void)command;
    char choices[128];
    struct str words = choices_of(rule, choices);
    printf(" \\\n          '%s[", rule->name);
    for (const char *at = rule->help; *at && *at != '\n'; at++) {
        if (*at == '\'')
            printf("'\\''");
        else if (strchr("[]:\\", *at))
            printf("\\%c", *at);
        else
            putchar(*at);
    }
    printf("]");
    if (takes_path(rule))
        printf(":%s:_files", rule->value);
    else if (rule->value)
        printf(":value:(%.*s)", STR_ARGS(words));
    printf("'");
}

static void print_zsh(const struct command *commands, size_t count)
{
    printf("#compdef reclaim\n# zsh completion for reclaim: put it into a folder of $fpath as _reclaim\n"
           "_reclaim() {\n  local -a commands\n  commands=(\n");
    for (size_t i = 0; i < count; i++) {
        char line[256];
        (void)snprintf(line, sizeof line, "%s:%s", commands[i].name, commands[i].summary);
        printf("    ");
        print_quoted(line);
        printf("\n");
    }
    printf("  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
           "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n");
    for (size_t i = 0; i < count; i++) {
        printf("    %s)\n      _arguments", commands[i].name);
        each_option(&commands[i], print_zsh_option, NULL);
        if (commands[i].verbs)
            printf(" \\\n          '1:what:(%s)'", commands[i].verbs);
        printf(" \\\n          '*::argument:' ;;\n");
    }
    printf("  esac\n}\n_reclaim \"$@\"\n");
}

static void print_fish_option(void *context, const struct command *command, const struct option_rule *rule)
{
    (void)context;
    char choices[128];
    struct str words = choices_of(rule, choices);
    printf("complete -c reclaim -n '__fish_seen_subcommand_from %s' -l %s", command->name, rule->name + 2);
    if (takes_path(rule))
        printf(" -r -F");
    else if (rule->value)
        printf(" -x -a '%.*s'", STR_ARGS(words));
    printf(" -d ");
    print_quoted(rule->help);
    printf("\n");
}

static void print_fish(const struct command *commands, size_t count)
{
    printf(
        "# fish completion for reclaim: put it into ~/.config/fish/completions/reclaim.fish\ncomplete -c reclaim -f\n");
    for (size_t i = 0; i < count; i++) {
        printf("complete -c reclaim -n __fish_use_subcommand -a %s -d ", commands[i].name);
        print_quoted(commands[i].summary);
        printf("\n");
        if (commands[i].verbs)
            printf("complete -c reclaim -n '__fish_seen_subcommand_from %s' -a '%s'\n", commands[i].name,
                   commands[i].verbs);
        each_option(&commands[i], print_fish_option, NULL);
    }
}

enum err completion_print(const char *shell, const struct command *commands, size_t count)
{
    if (strcmp(shell, "bash") == 0)
        print_bash(commands, count);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(commands, count);
    else if (strcmp(shell, "fish") == 0)
        print_fish(commands, count);
    else
        return ERR_INPUT;
    return OK;
}
