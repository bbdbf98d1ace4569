#include "cli/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/digest.h"

bool ask_can(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static struct str read_line(struct arena *arena)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len = getline(&line, &size, stdin);
    struct str text = len > 0 ? arena_copy(arena, str_trim((struct str){line, (size_t)len})) : (struct str){NULL, 0};
    if (line)
        secret_wipe(line, size);
    free(line);
    return text;
}

const char *ask_line(struct arena *arena, const char *question, const char *standard)
{
    fprintf(stderr, "%s%s%s%s: ", question, *standard ? " [" : "", standard, *standard ? "]" : "");
    struct str typed = read_line(arena);
    return typed.len ? typed.at : standard;
}

const char *ask_secret(struct arena *arena, const char *question)
{
    struct termios shown, hidden;
    bool hides = tcgetattr(STDIN_FILENO, &shown) == 0;
    if (hides) { /* before the question: an answer may follow it at once */
        hidden = shown;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        hides = tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) == 0;
    }
    fprintf(stderr, "%s: ", question);
    struct str typed = read_line(arena);
    if (hides)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &shown);
    fprintf(stderr, "\n");
    return typed.at ? typed.at : "";
}

bool ask_yes(const char *question, bool standard)
{
    AUTO(arena) struct arena *arena = arena_new(256, 65536);
    const char *typed = arena ? ask_line(arena, question, standard ? "Y/n" : "y/N") : "";
    return strcmp(typed, "Y/n") == 0 || typed[0] == 'y' || typed[0] == 'Y';
}
