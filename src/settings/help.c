/* Prints the table of settings: --help, the documentation page, the example file, the values in force. */
#include <string.h>

#include "base/json.h"
#include "settings/table.h"
#include "text/roff.h"

static bool starts_group(size_t i)
{
    return i == 0 || strcmp(settings_rows[i].group, settings_rows[i - 1].group) != 0;
}

/* Prints words up to the right edge, each line after `before`. Back-ticks are printed in Markdown only. */
static void print_wrapped(FILE *out, const char *before, const char *text)
{
    enum { EDGE = 100 };
    size_t column = 0;
    while (*text) {
        size_t len = strcspn(text, " ");
        if (column > 0 && column + 1 + len > EDGE) {
            fputs("\n", out);
            column = 0;
        }
        column += (size_t)fprintf(out, "%s", column == 0 ? before : " ");
        for (size_t i = 0; i < len; i++)
            if (text[i] != '`')
                fputc(text[i], out);
        column += len;
        text += len + (text[len] == ' ');
    }
    fputs("\n", out);
}

static void print_values(FILE *out, const char *before, const struct setting *row)
{
    AUTO(buf) struct buf text = buf_new(4096);
    buf_addz(&text, "Value: ");
    row->type->expects(row, &text);
    buf_addz(&text, ". Default: ");
    buf_addz(&text, row->standard_words ? row->standard_words : row->standard);
    buf_addz(&text, row->reloadable ? ". Can change on SIGHUP." : ".");
    struct str sentence = buf_str(&text);
    print_wrapped(out, before, sentence.at ? sentence.at : "");
}

void settings_print_help(FILE *out)
{
    fputs("Settings are environment variables, or the same names in the INI file given with --config; the\n"
          "environment wins. NAME_FILE reads the value of NAME from a file.\n",
          out);
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *row = &settings_rows[i];
        if (starts_group(i))
            fprintf(out, "\n%s:\n", row->group);
        fprintf(out, "  %s\n", row->name);
        print_wrapped(out, "      ", row->help);
        print_values(out, "      ", row);
    }
}

/* Escapes |, which ends a cell of a Markdown table. */
static void print_cell(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, *text == '|' ? "\\|" : "%c", *text);
}

static void print_markdown_row(FILE *out, const struct setting *row)
{
    AUTO(buf) struct buf values = buf_new(4096);
    row->type->expects(row, &values);
    struct str expected = buf_str(&values);
    fprintf(out, "| `%s` | ", row->name);
    if (row->standard_words)
        print_cell(out, row->standard_words);
    else
        fprintf(out, "`%s`", row->standard);
    fputs(" | ", out);
    print_cell(out, expected.at ? expected.at : "");
    fprintf(out, " | %s | ", row->reloadable ? "reload" : "restart");
    print_cell(out, row->help);
    fputs(" |\n", out);
}

void settings_print_markdown(FILE *out)
{
    fputs(
        "# Settings\n"
        "\n"
        "<!-- Written by the program from its table of settings (src/settings/table.c); a test compares. -->\n"
        "\n"
        "Settings are environment variables, or the same names in an INI file given with `--config FILE`\n"
        "(`NAME = value`, in any section or none, without quotes; lines that begin with `;` or `#` are comments).\n"
        "\n"
        "- The environment wins over the file. An empty value counts as unset.\n"
        "- `NAME_FILE` reads the value of `NAME` from a file and drops the newline at its end: the way to hand over\n"
        "  secrets. Setting both is an error.\n"
        "- A wrong value stops the start with one line that names the setting, the value and what was expected.\n"
        "- Unknown `RECLAIM_` names draw a warning, with the known name most like them.\n"
        "- SIGHUP reads all sources again. Settings marked *reload* change at once; of the others a warning says that\n"
        "  the new value needs a restart.\n"
        "- Durations have a unit: `500ms`, `10s`, `15m`, `2h`, `30d`.\n",
        out);
    for (size_t i = 0; i < settings_count; i++) {
        if (starts_group(i))
            fprintf(out,
                    "\n## %s\n\n| name | default | value | changes on | meaning |\n| --- | --- | --- | --- | --- |\n",
                    settings_rows[i].group);
        print_markdown_row(out, &settings_rows[i]);
    }
}

void settings_print_ini(FILE *out)
{
    fputs("; Settings of Reclaim, for reclaim serve --config FILE. Every line is optional; what is commented out\n"
          "; shows the default. The environment wins over this file. docs/settings.md says more.\n",
          out);
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *row = &settings_rows[i];
        if (starts_group(i))
            fprintf(out, "\n[%s]\n", row->group);
        fputs("\n", out);
        print_wrapped(out, "; ", row->help);
        print_values(out, "; ", row);
        fprintf(out, ";%s =%s%s\n", row->name, row->standard ? " " : "", row->standard ? row->standard : "");
    }
}

void settings_each(const struct settings *s, void (*each)(void *context, const struct setting_shown *setting),
                   void *context)
{
    static const char *const by[] = {"default", "environment", "file"};
    for (size_t i = 0; i < settings_count; i++) {
        const struct given *g = &s->origin->given[i];
        const struct setting *row = &settings_rows[i];
        AUTO(buf) struct buf value = buf_new(4096);
        if (g->text)
            setting_show(row, str_of(g->text), &value);
        each(context,
             &(struct setting_shown){row->name, row->group, value.len ? buf_str(&value) : (struct str){NULL, 0},
                                     by[g->by], g->where, row->reloadable, row->help});
    }
}

static void write_member(struct json_writer *w, const char *key, struct str text)
{
    json_key(w, key);
    json_str(w, text);
}

struct settings_json {
    struct json_writer w;
    bool is_sandbox;
};

static void write_setting(void *context, const struct setting_shown *setting)
{
    struct settings_json *to = context;
    struct str value = setting->value;
    if (!value.at && strcmp(setting->name, "RECLAIM_SANDBOX") == 0)
        value = to->is_sandbox ? STR("on") : STR("off"); /* its default depends on --demo */
    json_open(&to->w, '{');
    write_member(&to->w, "name", str_of(setting->name));
    write_member(&to->w, "group", str_of(setting->group));
    write_member(&to->w, "value", value);
    write_member(&to->w, "source", str_of(setting->source));
    json_key(&to->w, "reloadable");
    json_bool(&to->w, setting->reloadable);
    write_member(&to->w, "help", str_of(setting->help));
    json_close(&to->w, '}');
}

void settings_write_json(const struct settings *s, bool is_sandbox, struct buf *out)
{
    struct settings_json to = {json_to(out), is_sandbox};
    struct json_writer *w = &to.w;
    json_open(w, '{');
    json_key(w, "items");
    json_open(w, '[');
    settings_each(s, write_setting, &to);
    json_close(w, ']');
    json_key(w, "warnings");
    json_open(w, '[');
    for (size_t i = 0; i < s->warnings.count; i++)
        json_str(w, str_of(s->warnings.at[i]));
    json_close(w, ']');
    json_close(w, '}');
}

void settings_print_man(FILE *out)
{
    fputs(
        ".TH RECLAIM.INI 5 \"\" \"Reclaim " RECLAIM_VERSION "\" \"File Formats\"\n"
        ".SH NAME\nreclaim.ini \\- settings of Reclaim\n"
        ".SH DESCRIPTION\n"
        "Environment variables, or the same names in an INI file given with \\fB\\-\\-config\\fP: a line\n"
        "\\fINAME\\fP = \\fIvalue\\fP each, in any section or none, without quotes. Lines that begin with ; or # are\n"
        "comments. The environment wins over the file; an empty value counts as unset.\n"
        "\\fINAME\\fP_FILE reads the value of \\fINAME\\fP from a file. Durations have a unit: 500ms, 10s, 15m, 2h, "
        "30d.\n",
        out);
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *row = &settings_rows[i];
        AUTO(buf) struct buf text = buf_new(4096);
        row->type->expects(row, &text);
        if (starts_group(i))
            fprintf(out, ".SH \"%s\"\n", row->group);
        fprintf(out, ".TP\n.B %s\n", row->name);
        roff_print(out, row->help);
        fputs("\nValue: ", out);
        roff_print(out, text.failed ? "" : buf_str(&text).at);
        fputs(". Default: ", out);
        roff_print(out, row->standard_words ? row->standard_words : row->standard);
        fputs(row->reloadable ? ". Can change on SIGHUP.\n" : ".\n", out);
    }
    fputs(".SH SEE ALSO\n.BR reclaim (1)\n", out);
}
