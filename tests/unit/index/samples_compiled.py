"""Samples of compiled languages."""

from __future__ import annotations

from tests.unit.index.sample import Sample

SAMPLES = [
    Sample(
        "src/list.c",
        "c",
        """\
#include <stdio.h>
#define MAX_ITEMS 16
#define MIN(a, b) ((a) < (b) ? (a) : (b))

typedef struct node {
  int value;
  struct node *next;
} node_t;

enum color { RED, GREEN };

union word { int i; char c[4]; };

static const int limit = 3;

typedef int (*callback)(int);

/* Adds. */
static node_t *
list_add(node_t *list, int value)
{
  return list;
}

int main(void) { return 0; }
""",
        "macro MAX_ITEMS, macro MIN, struct node, type node_t, enum color, union word, "
        "variable limit, type callback, function list_add, function main",
    ),
    Sample(
        "src/shape.hpp",
        "cpp",
        """\
#pragma once
namespace geo {

template <typename T>
class Shape : public Base {
 public:
  explicit Shape(T size) : size_(size) {}
  virtual ~Shape() = default;
  virtual double area() const = 0;
  T operator+(const T &other) const { return other; }

 private:
  T size_;
};

struct Point { int x, y; };
enum class Kind { Round, Flat };
using Id = unsigned;

template <typename T>
double Shape<T>::scaled(int by) const {
  return by;
}

void Point::move(int by) { x += by; }

}  // namespace geo
""",
        "module geo, class geo>Shape, method geo>Shape>Shape, method geo>Shape>~Shape, method "
        "geo>Shape>area, method geo>Shape>operator+, struct geo>Point, enum geo>Kind, type "
        "geo>Id, method geo>Shape>scaled, method geo>Point>move",
    ),
    Sample(
        "src/lib.rs",
        "rust",
        """\
//! Cache.
use std::fmt;

pub const SIZE: usize = 4;
static NAME: &str = "x";

/// What is kept.
#[derive(Debug)]
pub struct Cache<T> {
    items: Vec<T>,
}

pub enum State { Open, Closed }

pub trait Store {
    fn get(&self) -> u8;
}

impl<T> Store for Cache<T> {
    fn get(&self) -> u8 {
        0
    }
}

type Row = Vec<u8>;

mod inner {
    pub fn helper() {}
}

macro_rules! square {
    ($x:expr) => { $x * $x };
}
""",
        "constant SIZE, constant NAME, struct Cache, enum State, trait Store, method "
        "Store>get, impl Cache, method Cache>get, type Row, module inner, function "
        "inner>helper, macro square",
    ),
    Sample(
        "server/main.go",
        "go",
        """\
package main

import "fmt"

const Port = 80

var (
	count int
	Names = []string{}
)

type Handler interface {
	Serve(path string) error
}

type Server struct {
	Addr string
}

type ID = string

// Run runs.
func (s *Server) Run() error {
	return nil
}

func main() {
	fmt.Println(Port)
}
""",
        "constant Port, variable count, variable Names, interface Handler, method "
        "Handler>Serve, struct Server, type ID, method Server>Run, function main",
    ),
    Sample(
        "src/main/java/Ledger.java",
        "java",
        """\
package bank;

/** Keeps. */
@Singleton
public class Ledger extends Base implements Closeable {
    private static final int MAX = 3;
    private int total;

    public Ledger(int start) {
        this.total = start;
    }

    @Override
    public void close() throws IOException {
    }

    enum State { OPEN, CLOSED }
}

interface Visitor<T> {
    T visit(Ledger ledger);
}

record Point(int x, int y) { }

@interface Marker { }
""",
        "class Ledger, constant Ledger>MAX, field Ledger>total, method Ledger>Ledger, method "
        "Ledger>close, enum Ledger>State, interface Visitor, method Visitor>visit, class "
        "Point, interface Marker",
    ),
    Sample(
        "src/Basket.cs",
        "csharp",
        """\
using System;

namespace Shop
{
    public record Item(string Name);

    public interface IPriced
    {
        decimal Price();
    }

    [Serializable]
    public class Basket : IPriced
    {
        private const int Max = 3;
        public int Count { get; set; }
        public Basket() { }
        public decimal Price() => 0m;
        public event EventHandler Changed;
    }

    public struct Money { public int Cents; }
    public enum Size { Small, Large }
    public delegate void Handler(int x);
}
""",
        "module Shop, class Shop>Item, interface Shop>IPriced, method Shop>IPriced>Price, "
        "class Shop>Basket, field Shop>Basket>Max, property Shop>Basket>Count, method "
        "Shop>Basket>Basket, method Shop>Basket>Price, field Shop>Basket>Changed, struct "
        "Shop>Money, field Shop>Money>Cents, enum Shop>Size, type Shop>Handler",
    ),
    Sample(
        "app/Main.kt",
        "kotlin",
        """\
package app

const val LIMIT = 3

interface Repo {
    fun find(id: Int): User?
}

data class User(val name: String) {
    val short = name.take(1)
    fun greet(): String = "hi"
    companion object {
        fun of(name: String) = User(name)
    }
}

object Registry {
    fun add(user: User) {}
}

enum class Level { LOW, HIGH }

typealias Users = List<User>

fun User.shout(): String {
    return name.uppercase()
}
""",
        "constant LIMIT, interface Repo, method Repo>find, class User, field User>short, "
        "method User>greet, method User>of, object Registry, method Registry>add, enum Level, "
        "type Users, function shout",
    ),
    Sample(
        "Sources/Game.swift",
        "swift",
        """\
import Foundation

let maxLives = 3

protocol Playable {
    func play()
}

struct Score {
    var points: Int
}

enum Mode { case easy, hard }

final class Game: Playable {
    private var score = Score(points: 0)
    init(mode: Mode) { }
    func play() { }
    static func load() -> Game { Game(mode: .easy) }
}

extension Game {
    func reset() { }
}

typealias Table = [String: Int]

func run() async throws { }
""",
        "variable maxLives, protocol Playable, method Playable>play, struct Score, field "
        "Score>points, enum Mode, class Game, field Game>score, method Game>init, method "
        "Game>play, method Game>load, extension Game, method Game>reset, type Table, function "
        "run",
    ),
    Sample(
        "core/Graph.scala",
        "scala",
        """\
package core

sealed trait Node {
  def name: String
}

case class Leaf(name: String) extends Node

object Graph {
  val Empty = new Graph(Nil)
  type Edge = (Node, Node)
  def apply(nodes: List[Node]): Graph = new Graph(nodes)
}

class Graph(nodes: List[Node]) {
  def size: Int = nodes.size
}

enum Color {
  case Red, Green
}
""",
        "module core, trait Node, method Node>name, class Leaf, object Graph, field "
        "Graph>Empty, type Graph>Edge, method Graph>apply, class Graph, method Graph>size, "
        "enum Color",
    ),
    Sample(
        "src/Tree.hs",
        "haskell",
        """\
module Data.Tree where

import qualified Data.Map as M

-- | A tree.
data Tree a = Leaf | Node (Tree a) a (Tree a)

newtype Name = Name { unName :: String }

type Table = M.Map String Int

class Container f where
  empty :: f a

instance Container Tree where
  empty = Leaf

insert :: Ord a => a -> Tree a -> Tree a
insert x Leaf = Node Leaf x Leaf
insert x t = t

limit :: Int
limit = 3
""",
        "module Data.Tree, type Tree, type Name, type Table, class Container, method "
        "Container>empty, impl Container, method Container>empty, function insert, function "
        "limit",
    ),
    Sample(
        "lib/stack.ml",
        "ocaml",
        """\
open Printf

type 'a t = { items : 'a list; size : int }

exception Empty

module Make (Ord : Set.OrderedType) = struct
  let compare = Ord.compare
end

module type S = sig
  val push : int -> int
end

let limit = 3

let rec push x stack =
  { stack with items = x :: stack.items }

class counter = object
  method incr = 1
end
""",
        "type t, exception Empty, module Make, variable Make>compare, interface S, method "
        "S>push, variable limit, function push, class counter, method counter>incr",
    ),
    Sample(
        "lib/stack.mli",
        "ocaml_interface",
        """\
type 'a t

val push : 'a -> 'a t -> 'a t
(** Puts one on top. *)

module Inner : sig
  val pop : 'a t -> 'a
end
""",
        "type t, function push, module Inner, function Inner>pop",
    ),
    Sample(
        "src/ring.zig",
        "zig",
        """\
const std = @import("std");

pub const Ring = struct {
    items: []u8,

    pub fn init(size: usize) Ring {
        return .{ .items = undefined };
    }
};

const Kind = enum { open, closed };

var count: u32 = 0;

pub fn main() !void {}

test "it turns" {}
""",
        "variable std, struct Ring, method Ring>init, enum Kind, variable count, function "
        "main, test it turns",
    ),
]
