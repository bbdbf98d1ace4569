/* `reclaim verify`: checks a certificate of erasure offline and says in words what it proves and what it does not. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "erasure/certificate.h"

#define KEY_FILE_MAX ((size_t)256 * 1024)

enum err verify_read(struct command_context *c)
{
    if (!*word(c, 0) || !option(c, "--key"))
        return why_set(&c->why, ERR_INPUT, "say which certificate, and --key with the file of the key set");
    if (!option(c, "--address") != !option(c, "--salt"))
        return why_set(&c->why, ERR_INPUT, "--address and --salt are given together");
    return OK;
}

static enum err read_file(struct command_context *c, const char *name, size_t most, struct str *ret)
{
    bool from_stdin = strcmp(name, "-") == 0;
    FILE *file = from_stdin ? stdin : fopen(name, "re");
    if (!file)
        return why_set(&c->why, ERR_SYSTEM, "cannot read \"%s\": %s", name, strerror(errno));
    char *text = arena_take(c->arena, most + 1);
    size_t len = text ? fread(text, 1, most + 1, file) : 0;
    bool failed = ferror(file);
    if (!from_stdin)
        fclose(file);
    if (!text)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    if (failed)
        return why_set(&c->why, ERR_SYSTEM, "cannot read \"%s\"", name);
    if (len > most)
        return why_set(&c->why, ERR_INPUT, "\"%s\" is larger than %zu bytes: this is no such file", name, most);
    *ret = str_trim((struct str){text, len});
    return OK;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* What became of its rows, and who says so: "3 rows deleted, 2026-…, by Reclaim itself". */
static void print_participant(const json_t *one)
{
    static const struct {
        const char *how, *words;
    } outcomes[] = {
        {"deleted", " deleted"}, {"emptied", " emptied of what is personal"}, {"marked", " only marked as deleted"}};
    static const struct {
        const char *by, *words;
    } sources[] = {{"reclaim", "by Reclaim itself"},
                   {"service", "as this service reported"},
                   {"administrator", "as an administrator reported for this service"}};
    const char *label = text_of(one, "label"), *outcome = "", *source = "and it is not known who reported it";
    const char *unit = strcmp(text_of(one, "kind"), "storage") == 0 ? "object" : "row";
    int64_t rows = json_integer_value(json_object_get(one, "rows"));
    for (size_t i = 0; i < COUNT_OF(outcomes); i++)
        if (strcmp(text_of(one, "how"), outcomes[i].how) == 0)
            outcome = outcomes[i].words;
    for (size_t i = 0; i < COUNT_OF(sources); i++)
        if (strcmp(text_of(one, "reported_by"), sources[i].by) == 0)
            source = sources[i].words;
    printf("  %s%s%s%s: %lld %s%s%s, %s, %s\n", text_of(one, "name"), *label ? " (" : "", label, *label ? ")" : "",
           (long long)rows, unit, rows == 1 ? "" : "s", outcome, text_of(one, "done_at"), source);
}

static void print_participants(const json_t *list)
{
    size_t i;
    const json_t *one;
    if (json_array_size(list) == 0)
        printf("Erased: no service or table was registered; the account's own row and login were cleared.\n");
    else
        printf("What was done:\n");
    json_array_foreach(list, i, one) print_participant(one);
}

static void print_kept(const json_t *kept, const json_t *not_covered)
{
    size_t i;
    const json_t *one;
    if (json_array_size(kept))
        printf("Not erased:\n");
    json_array_foreach(kept, i, one) printf("  %s: %s\n", text_of(one, "name"), text_of(one, "reason"));
    if (json_array_size(not_covered))
        printf("Not covered:\n");
    json_array_foreach(not_covered, i, one)
        printf("  %s%s%s: %s\n", text_of(one, "what"), *text_of(one, "until") ? " until " : "", text_of(one, "until"),
               text_of(one, "reason"));
}

static void print_certificate(const json_t *claims)
{
    const json_t *log = json_object_get(claims, "log");
    printf("The certificate holds.\n\n");
    printf("Customer:  %s\nRequested: %s\nComplete:  %s\n", text_of(claims, "sub"), text_of(claims, "requested_at"),
           text_of(claims, "completed_at"));
    printf("Certificate %s%s%s\n", text_of(claims, "jti"), *text_of(claims, "replaces") ? ", which replaces " : "",
           text_of(claims, "replaces"));
    printf("Sealed log of installation %s: leaf %lld of %lld\n\n", text_of(claims, "installation"),
           (long long)json_integer_value(json_object_get(log, "position")),
           (long long)json_integer_value(json_object_get(log, "size")));
    print_participants(json_object_get(claims, "participants"));
    print_kept(json_object_get(claims, "kept"), json_object_get(claims, "not_covered"));
    printf(
        "\nProved: this was signed with the key of that installation, was not changed since, and is part of its\n"
        "sealed log. Not proved: that services which reported for themselves did what they say, and that there are no\n"
        "copies in places that are not named. The key set must come from a place that you trust.\n");
}

static enum err check_address(struct command_context *c, const json_t *claims)
{
    bool same;
    if (!option(c, "--address"))
        return OK;
    enum err e = certificate_is_about(claims, str_of(option(c, "--address")), str_of(option(c, "--salt")), &same);
    if (e == ERR_MISSING)
        return why_set(&c->why, e, "the certificate names no address: no last mail was sent");
    if (e)
        return why_set(&c->why, e, "--salt is the number in the last mail, 32 digits from 0 to f");
    if (!same)
        return why_set(&c->why, ERR_INPUT, "the certificate is not about this address, or the salt is another one");
    printf("The certificate is about %s.\n", option(c, "--address"));
    return OK;
}

enum err verify_command(struct command_context *c)
{
    struct str jws = {0}, keys = {0};
    struct proof_key_set set;
    struct why why;
    enum err e = read_file(c, word(c, 0), CERTIFICATE_MAX, &jws);
    if (e || (e = read_file(c, option(c, "--key"), KEY_FILE_MAX, &keys)) ||
        (e = proof_key_set_read(keys, &set, &c->why)))
        return e;
    AUTO(json) json_t *claims = certificate_check(jws, &set, &why);
    if (!claims)
        return why_set(&c->why, ERR_INPUT, "the certificate does not hold: %s", why.text);
    print_certificate(claims);
    return check_address(c, claims);
}
