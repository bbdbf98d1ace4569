#!/usr/bin/python3
"""Writes the reference of the API as HTML: the part of the page /docs that comes from openapi.json.

usage: docs.py OPENAPI OUTPUT

The output is a part of a template (src/text/template.h): words of the page itself are sentences of the section [docs]; what comes
from the description stays English and is marked so. It has no <html> and no <head>, no style and
no script; all text in it is escaped. Each operation's anchor is its operationId. web/docs.js adds the search, the forms to try operations and the buttons to copy.
"""

import html
import json
import re
import sys
from pathlib import Path

OWN = 'lang="\x01lang\x02"'  # inside English: in the language of the page again
METHODS = ["get", "head", "post", "put", "patch", "delete", "options"]
COMMON = 10  # an answer that more operations share is shown in full once only, and is left out of the search

ADMITS = ["customer", "owner_only", "admin", "read", "billing", "calls", "receipts"]


def t(name):
    """A sentence of the page; main() makes a tag of it."""
    return f"\x01t docs.{name}\x02"


def esc(text):
    """For text and for values of attributes."""
    return html.escape(str(text), quote=True)


def plain(text):
    """For text only: shorter, as examples are full of quotation marks."""
    return html.escape(str(text), quote=False)


def inline(text):
    """One paragraph: `code` and **bold** of the description's Markdown."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", plain(text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)


def prose(text):
    return "".join(f'<p lang="en">{inline(part)}</p>\n' for part in text.split("\n\n") if part.strip())


def code_block(label, text, language, attributes=""):
    return (
        f'<figure class="docs-code"{attributes}><figcaption lang="en"><span>{inline(label)}</span></figcaption>'
        f'<pre tabindex="0"><code class="docs-{language}">{text}</code></pre></figure>\n'
    )


def as_text(value):
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def links(names):
    return " or ".join(f'<a href="#object-{esc(name)}">{esc(name)}</a>' for name in names)


def alternatives(schemas):
    """One schema for a property of several variants: the first, or all their constants."""
    constants = [schema["const"] for schema in schemas if "const" in schema]
    return {**schemas[0], "enum": constants} if len(constants) == len(schemas) > 1 else schemas[0]


class Description:
    """openapi.json with its references followed."""

    def __init__(self, data):
        self.data = data
        uses = {}
        for _, _, operation in self.operations():
            for answer in operation["responses"].values():
                uses[answer.get("$ref")] = uses.get(answer.get("$ref"), 0) + 1
        self.common = {ref for ref, count in uses.items() if ref and count > COMMON}

    def follow(self, value):
        while isinstance(value, dict) and "$ref" in value:
            found = self.data
            for part in value["$ref"][2:].split("/"):
                found = found[part.replace("~1", "/").replace("~0", "~")]
            beside = {key: inner for key, inner in value.items() if key != "$ref"}
            value = {**found, **beside}
        return value

    def operations(self):
        for path, item in self.data["paths"].items():
            for method in METHODS:
                if method in item:
                    yield path, method, item[method]

    def groups(self, tag):
        """Operations of a tag. Those that differ in nothing but their method are one: [(path, [method], [operation])]."""
        groups = []
        for path, method, operation in self.operations():
            if operation["tags"][0] != tag:
                continue
            plain = {key: value for key, value in operation.items() if key != "operationId"}
            last = groups[-1] if groups else None
            if last and last[0] == path and last[3] == plain:
                last[1].append(method)
                last[2].append(operation)
            else:
                groups.append((path, [method], [operation], plain))
        return [group[:3] for group in groups]

    def examples(self, content):
        """The examples beside a schema: [(words, value)]."""
        if "example" in content:
            return [("Example", content["example"])]
        found = [(name, self.follow(one)) for name, one in content.get("examples", {}).items()]
        return [(one.get("summary", name), one["value"]) for name, one in found]

    def properties(self, schema):
        """The properties of a schema and of what it is composed of, and the names of those that are required."""
        schema = self.follow(schema)
        found, required = dict(schema.get("properties", {})), set(schema.get("required", []))
        for part in schema.get("allOf", []):
            inner, names = self.properties(part)
            found, required = {**inner, **found}, required | names
        for kind in ("oneOf", "anyOf"):
            parts = [self.properties(part) for part in schema.get(kind, [])]
            for name in dict.fromkeys(name for inner, _ in parts for name in inner):
                found.setdefault(name, alternatives([inner[name] for inner, _ in parts if name in inner]))
            if parts:
                required |= set.intersection(*(names for _, names in parts))
        return found, required

    def type_of(self, schema):
        """A few words: what values the schema allows."""
        schema = self.follow(schema)
        if "enum" in schema:
            return "one of " + ", ".join("null" if one is None else str(one) for one in schema["enum"])
        if "const" in schema:
            return f"always {json.dumps(schema['const'])}"
        if "type" not in schema:
            kinds = [self.type_of(one) for kind in ("oneOf", "anyOf", "allOf") for one in schema.get(kind, [])]
            return " or ".join(dict.fromkeys(kind for kind in kinds if kind))
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        words = {"uuid": "UUID", "date-time": "time"}.get(schema.get("format"))
        names = [words if words and kind == "string" else kind for kind in kinds]
        if "array" in kinds and "items" in schema:
            names = [f"list of {self.type_of(schema['items'])}" if name == "array" else name for name in names]
        text = " or ".join(names)
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None and high is not None:
            text += f", {low} to {high}"
        elif low is not None:
            text += f", at least {low}"
        if "maxLength" in schema:
            text += f", at most {schema['maxLength']} characters"
        return text + (f", default {schema['default']}" if "default" in schema else "")

    def objects(self, schema):
        """The names of the described objects that a value of this schema is."""
        name, schema = schema.get("$ref", "").rpartition("/")[2], self.follow(schema)
        if name and schema.get("type") == "object":
            return [name]
        parts = [part for kind in ("oneOf", "anyOf") for part in schema.get(kind, [])]
        return [name for part in parts for name in self.objects(part)]

    def fields(self, schema, prefix=""):
        """[(name, type as HTML, required, description)], with the fields of inner objects that have no name behind them."""
        found, required = self.properties(schema)
        rows = []
        for name, inner in found.items():
            whole = self.follow(inner)
            items = whole.get("items", {})
            own, listed = self.objects(inner), self.objects(items)
            words = links(own) if own else f"list of {links(listed)}" if listed else esc(self.type_of(inner))
            rows.append((prefix + name, words, name in required, whole.get("description", "")))
            if not own and not listed:
                rows += self.fields(whole, f"{prefix}{name}.") or self.fields(items, f"{prefix}{name}[].")
        return rows

    def answer_objects(self):
        """The objects that successful answers consist of, those inside them included, by name."""
        found = [name for _, _, operation in self.operations() for status, answer in operation["responses"].items() if status < "300"
                 for content in self.follow(answer).get("content", {}).values() for name in self.objects(content["schema"])]
        for name in found:
            rows = self.fields(self.data["components"]["schemas"][name])
            found += [inner for _, words, _, _ in rows for inner in re.findall("#object-([A-Za-z]+)", words) if inner not in found]
        return sorted(set(found))


def field_list(rows, with_required):
    out = ['<dl class="docs-fields" lang="en">\n']
    for name, kind, required, description in rows:
        need = f' <span class="docs-required" {OWN}>{t("required")}</span>' if required and with_required else ""
        out.append(f'<div><dt><code>{esc(name)}</code> <span class="docs-type">{kind}</span>{need}</dt>')
        out.append(f"<dd>{inline(description)}</dd></div>\n" if description else "<dd></dd></div>\n")
    return "".join(out).replace("<dd></dd>", "") + "</dl>\n"


def who(operation):
    if not operation.get("security"):
        return t("admits_anyone")
    admits = operation.get("x-admits")
    if not admits:
        return t("admits_any_credentials")
    names = [name for name in ADMITS if name in admits and not (name == "customer" and "owner_only" in admits)]
    frozen = " " + t("admits_frozen") if "frozen" in admits else ""
    return "; ".join(t(f"admits_{name}") + (frozen if name in ("customer", "owner_only") else "") for name in names) + "."


def first_example(d, operation):
    for content in d.follow(operation.get("requestBody", {})).get("content", {}).values():
        return d.examples(content)[0][1]
    return None


def address(d, path, operation):
    """The path with its parameters replaced by their examples."""
    query = []
    for parameter in map(d.follow, operation.get("parameters", [])):
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", str(parameter.get("example", parameter["name"].upper())))
        elif parameter["in"] == "query" and parameter.get("required"):
            query.append(f"{parameter['name']}={parameter.get('example', '')}")
    return path + ("?" + "&".join(query) if query else "")


def server_of(d, path):
    return d.data["paths"][path].get("servers", d.data["servers"])[0]["url"]


def origin(d, path):
    """The server's address. docs.js replaces that of the public listener by the one that serves the page."""
    own = "servers" in d.data["paths"][path]
    return esc(server_of(d, path)) if own else f'<span class="docs-origin">{esc(server_of(d, path))}</span>'


def curl(d, path, method, operation):
    url = address(d, path, operation)
    option = {"get": "", "head": "-I "}.get(method, f"-X {method.upper()} ")
    lines = [f"curl {option}'{origin(d, path)}{plain(url)}'"]
    if operation.get("security"):
        lines.append(plain("-H 'Authorization: Bearer TOKEN'"))
    body = first_example(d, operation)
    if body is not None:
        lines.append(plain("-H 'Content-Type: application/json'"))
        text = json.dumps(body, ensure_ascii=False)
        text = text if len(text) < 60 else json.dumps(body, indent=2, ensure_ascii=False).replace("\n", "\n  ")
        lines.append(plain("-d '" + text.replace("'", "'\\''") + "'"))
    return " \\\n  ".join(lines)


def javascript(d, path, method, operation):
    url = f"'{origin(d, path)}{plain(address(d, path, operation))}'"
    body = first_example(d, operation)
    headers = ["    Authorization: `Bearer ${token}`,"] if operation.get("security") else []
    headers += ["    'Content-Type': 'application/json',"] if body is not None else []
    options = [f"  method: '{method.upper()}',"] if method != "get" else []
    options += ["  headers: {", *headers, "  },"] if headers else []
    if body is not None:
        options.append("  body: JSON.stringify(" + json.dumps(body, indent=2, ensure_ascii=False).replace("\n", "\n  ") + "),")
    call = f"const answer = await fetch({url}" + (plain(", {\n" + "\n".join(options) + "\n}") if options else "") + ");\n"
    types = {kind for status, answer in operation["responses"].items() if status < "300" for kind in d.follow(answer).get("content", {})}
    read = "answer.status" + ("" if not types or method == "head" else ", await answer.json()" if "application/json" in types else ", await answer.text()")
    return call + plain(f"console.log({read});")


def answer_summary(status, answer):
    kind = {"2": "good", "4": "warn", "5": "bad"}.get(status[0], "soft")
    return f'<summary><span class="docs-status docs-{kind}">{esc(status)}</span> <span lang="en">{inline(answer["description"])}</span></summary>\n'


def answer_body(d, status, answer):
    """Examples, fields and header fields."""
    out, contents = [], answer.get("content", {})
    if not contents:
        out.append(f'<p class="docs-soft">{t("no_body")}</p>\n')
    for type_name, content in contents.items():
        for words, value in d.examples(content):
            label = words if type_name == "application/json" else f"{words}, {type_name}"
            out.append(code_block(label, plain(as_text(value)), "json"))
        if status < "300":
            names, rows = d.objects(content["schema"]), d.fields(content["schema"])
            out.append(f'<p class="docs-soft">{t("fields")} {links(names)}</p>\n' if names else field_list(rows, False) if rows else "")
    headers = ", ".join(f"<code>{esc(name)}</code>" for name in answer.get("headers", {}))
    return "".join(out) + (f'<p class="docs-soft">{t("header_fields")}: {headers}</p>\n' if headers else "")


def answer_part(d, status, reference, is_open):
    answer = d.follow(reference)
    if reference.get("$ref") not in d.common:
        return f'<details class="docs-answer"{" open" if is_open else ""}>{answer_summary(status, answer)}{answer_body(d, status, answer)}</details>\n'
    name = reference["$ref"].rpartition("/")[2]
    value = d.examples(answer["content"]["application/json"])[0][1]
    return (
        f'<details class="docs-answer" data-common>{answer_summary(status, answer)}'
        f'<pre tabindex="0"><code>{plain(as_text(value))}</code></pre>\n'
        f'<p class="docs-soft"><a href="#answer-{esc(name)}">{t("more_of_answer")}</a></p></details>\n'
    )


def parameters_part(d, operation):
    parameters = [d.follow(one) for one in operation.get("parameters", [])]
    if not parameters:
        return ""
    out = [f'<h4>{t("parameters")}</h4>\n<dl class="docs-fields" lang="en">\n']
    for one in parameters:
        need = f' <span class="docs-required" {OWN}>{t("required")}</span>' if one.get("required") else ""
        allowed = d.follow(one["schema"]).get("enum")
        data = f' data-parameter="{esc(one["name"])}" data-in="{esc(one["in"])}"' + (" data-required" if one.get("required") else "")
        data += f' data-example="{esc(one["example"])}"' if "example" in one else ""
        data += f' data-allowed="{esc(" ".join(map(str, allowed)))}"' if allowed else ""
        out.append(f'<div{data}><dt><code>{esc(one["name"])}</code> <span class="docs-type">{esc(one["in"])}, {esc(d.type_of(one["schema"]))}</span>{need}</dt>')
        out.append(f"<dd>{inline(one.get('description', ''))}</dd></div>\n")
    return "".join(out) + "</dl>\n"


def body_part(d, operation):
    body = d.follow(operation.get("requestBody", {}))
    out = []
    for type_name, content in body.get("content", {}).items():
        need = "" if body.get("required") else ", " + t("optional_body")
        out.append(f'<h4>{t("body")} <span class="docs-type">{esc(type_name)}{need}</span></h4>\n')
        out.append(field_list(d.fields(content["schema"]), True))
        for words, value in d.examples(content):
            out.append(code_block(words, plain(as_text(value)), "json", " data-body"))
    return "".join(out)


def method_badge(method):
    return f'<span class="docs-method docs-{method}">{method.upper()}</span>'


def operation_part(d, path, methods, operations):
    operation, public = operations[0], "servers" not in d.data["paths"][path]
    data = f' data-methods="{" ".join(methods).upper()}" data-path="{esc(path)}"' if public and "options" != methods[0] else ""
    data += " data-credentials" if operation.get("security") else ""
    ids = "".join(f'<span id="{esc(one["operationId"])}"></span>' for one in operations[1:])
    badges = " ".join(method_badge(method) for method in methods)
    out = [f'<article class="docs-operation" id="{esc(operation["operationId"])}"{data}>{ids}\n']
    out.append(f'<h3 lang="en">{inline(operation["summary"])} <a class="docs-anchor" href="#{esc(operation["operationId"])}" aria-label="#: {esc(operation["summary"])}">#</a></h3>\n')
    out.append(f'<p class="docs-line">{badges} <code>{esc(path).replace("/", "/<wbr>")}</code></p>\n')
    out.append(prose(operation["description"]))
    if not public:
        out.append(f'<p class="docs-soft" lang="en">{inline(d.data["paths"][path]["servers"][0]["description"])}</p>\n')
    out.append(f'<p class="docs-who"><strong>{t("who")}</strong> {who(operation)}</p>\n')
    out.append(parameters_part(d, operation) + body_part(d, operation))
    out.append(f'<h4>{t("request")}</h4>\n')
    out.append(code_block("curl", curl(d, path, methods[0], operation), "shell"))
    out.append(code_block("JavaScript", javascript(d, path, methods[0], operation), "script"))
    out.append(f'<h4 class="docs-answers">{t("answers")}</h4>\n')
    statuses = sorted(operation["responses"])
    usual = max((status for status in statuses if status < "300"), default=None)
    out += [answer_part(d, status, operation["responses"][status], status == usual) for status in statuses]
    return "".join(out) + "</article>\n"


def title(tag):
    return tag[0].upper() + tag[1:]


def navigation(d, tags):
    out = [f'<nav class="docs-nav" aria-label="{t("operations")}">\n<details class="docs-menu" open><summary>{t("operations")}</summary>\n']
    out.append(f'<h2><a href="#introduction">{t("introduction")}</a></h2>\n<ul><li><a href="#credentials">{t("credentials")}</a></li><li><a href="#common-answers">{t("common")}</a></li><li><a href="#objects">{t("objects")}</a></li></ul>\n')
    for tag, groups in tags:
        name = tag["name"]
        out.append(f'<h2><a href="#tag-{esc(name)}" lang="en">{esc(title(name))}</a></h2>\n<ul lang="en">\n')
        for _, methods, operations in groups:
            text = methods[0].upper() if len(methods) == 1 else "ANY"
            out.append(f'<li><a href="#{esc(operations[0]["operationId"])}"><span>{inline(operations[0]["summary"])}</span> <span class="docs-method docs-{methods[0]}">{text}</span></a></li>\n')
        out.append("</ul>\n")
    return "".join(out) + "</details>\n</nav>\n"


def introduction(d):
    info = d.data["info"]
    out = [f'<h1>{t("title")}</h1>\n<header class="docs-card" id="introduction">\n<p class="docs-soft">{t("english")}</p>\n<p class="docs-lead" lang="en">{inline(info["summary"])}</p>\n{prose(info["description"])}']
    out.append(f'<p class="docs-soft">{t("version")} {esc(info["version"])}. {t("for_programs")} <a href="/openapi.json">openapi.json</a>.</p>\n</header>\n')
    out.append(f'<section class="docs-card" id="credentials">\n<h2>{t("credentials")}</h2>\n<dl class="docs-fields" lang="en">\n')
    for scheme in d.data["components"]["securitySchemes"].values():
        name = "Authorization: Bearer TOKEN" if scheme["type"] == "http" else f"{scheme['name']}: KEY"
        out.append(f"<div><dt><code>{esc(name)}</code></dt><dd>{inline(scheme['description'])}</dd></div>\n")
    out.append("</dl>\n</section>\n")
    return "".join(out)


def common_answers(d):
    out = [f'<section class="docs-tag" id="common-answers">\n<h2>{t("common")}</h2>\n<p>{t("common_text")}</p>\n']
    for status, reference in d.data["x-answers-anywhere"].items():
        answer = d.follow(reference)
        out.append(f'<details class="docs-answer">{answer_summary(status, answer)}{answer_body(d, status, answer)}</details>\n')
    shared = {answer["$ref"]: status for _, _, operation in d.operations() for status, answer in operation["responses"].items() if answer.get("$ref") in d.common}
    for reference, status in sorted(shared.items(), key=lambda one: one[1]):
        answer, name = d.follow({"$ref": reference}), reference.rpartition("/")[2]
        out.append(f'<details class="docs-answer" id="answer-{esc(name)}" open>{answer_summary(status, answer)}{answer_body(d, status, answer)}</details>\n')
    return "".join(out) + "</section>\n"


def objects(d):
    out = [f'<section class="docs-tag" id="objects">\n<h2>{t("objects")}</h2>\n<p>{t("objects_text")}</p>\n']
    for name in d.answer_objects():
        schema = d.data["components"]["schemas"][name]
        out.append(f'<section class="docs-object" id="object-{esc(name)}"><h3>{esc(name)}</h3>\n{prose(schema.get("description", ""))}{field_list(d.fields(schema), False)}</section>\n')
    return "".join(out) + "</section>\n"


SCRIPT_WORDS = """search search_key found none copy copied selected bearer key sent_as token optional body example use_token token_used
not_sent not_sent_why in_ms nothing header_fields no_answer is_running send request try try_text method"""


def script_words():
    """What docs.js says."""
    return "<ul hidden>" + "".join(f'<li data-word="{name}" data-text="{t("js_" + name)}"></li>' for name in SCRIPT_WORDS.split()) + "</ul>\n"


def page(d):
    tags = [(tag, d.groups(tag["name"])) for tag in d.data["tags"]]
    tags = [(tag, groups) for tag, groups in tags if groups]
    out = ['<div class="docs">\n', script_words(), navigation(d, tags), '<div class="docs-reference">\n', introduction(d)]
    for tag, groups in tags:
        out.append(f'<section class="docs-tag" id="tag-{esc(tag["name"])}">\n<h2 lang="en">{esc(title(tag["name"]))}</h2>\n{prose(tag["description"])}')
        out += [operation_part(d, *group) for group in groups]
        out.append("</section>\n")
    return "".join(out) + common_answers(d) + objects(d) + "</div>\n</div>\n"


def main():
    source, output = Path(sys.argv[1]), Path(sys.argv[2])
    text = page(Description(json.loads(source.read_text(encoding="utf-8"))))
    text = text.replace("{{", "{&#123;").replace("\x01", "{{").replace("\x02", "}}")
    output.write_text(text, encoding="utf-8")


main()
