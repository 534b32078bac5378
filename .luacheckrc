std = "luajit"
max_line_length = 100
read_globals = { "vim" }
globals = { "vim.g", "vim.b", "vim.bo", "vim.wo", "vim.o", "vim.go", "vim.opt", "vim.env", "vim.v", "vim.paste" }
