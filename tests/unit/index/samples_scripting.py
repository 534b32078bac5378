"""Samples of scripting languages."""

from __future__ import annotations

from tests.unit.index.sample import Sample

SAMPLES = [
    Sample(
        "jobs/queue.py",
        "python",
        '''\
"""Jobs."""
import heapq

LIMIT: int = 3
handlers = {}
type Pair = tuple[int, int]


class Queue(Base):
    """First in, first out."""

    size = 0

    @property
    def head(self):
        return self._items[0]

    async def put(self, item):
        def inner():
            pass


@decorated(
    1,
)
def main():
    pass
''',
        "constant LIMIT, variable handlers, type Pair, class Queue, field Queue>size, method "
        "Queue>head, method Queue>put, function Queue>put>inner, function main",
    ),
    Sample(
        "lua/thing.lua",
        "lua",
        """\
local M = {}
local WAIT_MS = 20

local function pick(list)
  return list[1]
end

function M.open(path)
  return pick(path)
end

function M:close() end

M.read = function(path)
  return path
end

local callbacks = {
  on_exit = function(code) end,
}

return M
""",
        "variable M, constant WAIT_MS, function pick, function open, method close, function "
        "read, variable callbacks, function callbacks>on_exit",
    ),
    Sample(
        "web/app.js",
        "javascript",
        """\
import fs from 'fs'

const LIMIT = 3

export class App extends Base {
  #secret = 1
  constructor(options) { super(options) }
  static create() { return new App() }
  get name() { return 1 }
  handle = (event) => { this.x = event }
}

export default function start(port) {
  return port
}

const add = (a, b) => a + b

module.exports.close = function () {}

const api = {
  fetch() {},
  send: async (x) => x,
}

function* items() { yield 1 }
""",
        "constant LIMIT, class App, field App>#secret, method App>constructor, method "
        "App>create, method App>name, method App>handle, function start, function add, "
        "function close, variable api, method api>fetch, function api>send, function items",
    ),
    Sample(
        "web/model.ts",
        "typescript",
        """\
export interface User {
  id: number
  rename(name: string): void
}

export type Id = string | number

export enum Role { Admin, Guest }

namespace Tools {
  export function help(): void {}
}

export abstract class Store<T> {
  private items: T[] = []
  abstract load(): Promise<T>
  async save(item: T): Promise<void> { this.items.push(item) }
}

export const make = async <T>(x: T): Promise<T> => x

declare function log(text: string): void

export const PAGE = 20
""",
        "interface User, method User>rename, type Id, enum Role, module Tools, function "
        "Tools>help, class Store, field Store>items, method Store>load, method Store>save, "
        "function make, function log, constant PAGE",
    ),
    Sample(
        "web/Button.tsx",
        "tsx",
        """\
import React from 'react'

type Props = { label: string }

export const Button = ({ label }: Props) => {
  return <button className="b">{label}</button>
}

export default class Page extends React.Component<Props> {
  render() { return <Button label="x" /> }
}
""",
        "type Props, function Button, class Page, method Page>render",
    ),
    Sample(
        "lib/robot.rb",
        "ruby",
        """\
require 'set'

module Robots
  SPEED = 3

  class Arm < Base
    attr_reader :angle

    def initialize(angle)
      @angle = angle
    end

    def self.build(spec) = new(spec)

    def ready?
      true
    end
  end
end

def run
end
""",
        "module Robots, constant Robots>SPEED, class Robots>Arm, field Robots>Arm>angle, "
        "method Robots>Arm>initialize, method Robots>Arm>build, method Robots>Arm>ready?, "
        "function run",
    ),
    Sample(
        "src/Mailer.php",
        "php",
        """\
<?php
namespace App\\Mail;

const RETRIES = 3;

interface Sender { public function send(string $to): bool; }

trait Logs { protected function log() {} }

enum Status: string { case Sent = 's'; }

final class Mailer implements Sender
{
    use Logs;
    public const LIMIT = 5;
    private array $queue = [];

    public function __construct(private int $retries) {}

    public function send(string $to): bool
    {
        return true;
    }
}

function helper(int $x): int { return $x; }
""",
        "module App\\Mail, constant RETRIES, interface Sender, method Sender>send, trait Logs, "
        "method Logs>log, enum Status, class Mailer, constant Mailer>LIMIT, field "
        "Mailer>queue, method Mailer>__construct, method Mailer>send, function helper",
    ),
    Sample(
        "bin/deploy.sh",
        "bash",
        """\
#!/usr/bin/env bash
set -eu
readonly TARGET=/srv
retries=3

log() {
  local text="$1"
  echo "$text"
}

function deploy {
  log "to $TARGET"
}

deploy "$@"
""",
        "constant TARGET, variable retries, function log, function deploy",
    ),
    Sample(
        "lib/cart.ex",
        "elixir",
        """\
defmodule Shop.Cart do
  @moduledoc "Keeps."
  defstruct [:items]

  @doc "Adds one."
  def add(cart, item) when is_map(item) do
    check(item)
  end

  defp check(item), do: item
  defmacro guard_it(x), do: x
end

defprotocol Shop.Priced do
  def price(thing)
end

defimpl Shop.Priced, for: Shop.Cart do
  def price(_), do: 0
end
""",
        "module Shop.Cart, function Shop.Cart>add, function Shop.Cart>check, macro "
        "Shop.Cart>guard_it, protocol Shop.Priced, method Shop.Priced>price, impl "
        "Shop.Priced, method Shop.Priced>price",
    ),
]
