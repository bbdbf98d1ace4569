// A local mail server with a minimal SMTP, which records mails.

import net from 'node:net';

import { stageOf, until } from './stage.js';

/** Quoted-printable of UTF-8. */
const decode = (text) => {
  const bytes = text.replace(/=\r\n/g, '').replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
};

class Letter {
  constructor({ from, to }, data) {
    Object.assign(this, { from, to, data });
    const [head] = data.split('\r\n\r\n', 1);
    this.headers = Object.fromEntries(
      head
        .replace(/\r\n[ \t]+/g, ' ')
        .split('\r\n')
        .map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
    );
    const [, boundary] = /boundary="([^"]+)"/.exec(this.headers['content-type']);
    this.parts = data
      .split(`--${boundary}`)
      .slice(1, -1)
      .map((part) => ({ type: /^Content-Type: ([^;\r]+)/im.exec(part)[1], text: decode(part.slice(part.indexOf('\r\n\r\n') + 4)) }));
  }

  get code() {
    return this.parts[0].text.match(/^ {4}(\S+)\r?$/m)?.[1];
  }
}

export class FakeSmtp {
  letters = [];
  recipientReply = '250 ok'; // the reply to RCPT TO

  static async start(scope) {
    const fake = new FakeSmtp();
    fake.sockets = new Set();
    fake.server = net.createServer((socket) => fake.#talk(socket));
    await new Promise((resolve) => fake.server.listen(0, '127.0.0.1', resolve));
    fake.env = { RECLAIM_SMTP_URL: `smtp://127.0.0.1:${fake.server.address().port}`, RECLAIM_MAIL_FROM: 'Réclaim <reclaim@example.com>' };
    stageOf(scope).after(async () => {
      for (const socket of fake.sockets) socket.destroy();
      await new Promise((resolve) => fake.server.close(resolve));
    });
    return fake;
  }

  mailTo(address) {
    return until('a letter', () => this.letters.find((letter) => letter.to.includes(address)));
  }

  #talk(socket) {
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
    let envelope = { to: [] };
    let taking = false;
    let heard = '';
    const say = (line) => socket.write(`${line}\r\n`);
    const command = (line) => {
      const verb = line.slice(0, 4).toUpperCase();
      const [, path] = /<([^>]*)>/.exec(line) ?? [];
      if (verb === 'MAIL') envelope = { from: path, to: [] };
      if (verb === 'RCPT' && this.recipientReply.startsWith('2')) envelope.to.push(path);
      if (verb === 'DATA') taking = true;
      say({ EHLO: '250 fake.example.com', HELO: '250 fake.example.com', RCPT: this.recipientReply, DATA: '354 go on', QUIT: '221 bye' }[verb] ?? '250 ok');
      if (verb === 'QUIT') socket.end();
    };
    say('220 fake.example.com ready');
    socket.on('data', (bytes) => {
      heard += bytes.toString('latin1');
      for (;;) {
        const end = taking ? '\r\n.\r\n' : '\r\n';
        const at = heard.indexOf(end);
        if (at < 0) return;
        const text = heard.slice(0, at);
        heard = heard.slice(at + end.length);
        if (taking) {
          taking = false;
          this.letters.push(new Letter(envelope, text.replace(/^\.\./gm, '.')));
          say('250 taken');
        } else {
          command(text);
        }
      }
    });
  }
}
