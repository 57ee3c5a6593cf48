-- SPDX-License-Identifier: GPL-2.0
-- Tables of scripts/series: a line for each row if they are narrow, else a list of rows. pandoc's grids break words.

local columns = 78

local function width(rows)
	local sum = 0

	for column in ipairs(rows[1]) do
		local most = 0

		for _, row in ipairs(rows) do
			most = math.max(most, #pandoc.write(pandoc.Pandoc(row[column]), 'rst'))
		end
		sum = sum + most + 1
	end
	return sum
end

local function row_of_list(row)
	local lines = {}

	for _, cell in ipairs(row) do
		local text = pandoc.write(pandoc.Pandoc(cell), 'rst', { columns = columns - 8 })

		lines[#lines + 1] = '     - ' .. text:gsub('\n+$', ''):gsub('\n', '\n       ')
	end
	return (table.concat(lines, '\n'):gsub('^    ', '   *'))
end

-- pandoc drops one of the line ends behind it; the other keeps what follows apart.
local function list(rows, headers)
	local lines = { '.. list-table::', '   :header-rows: ' .. headers, '' }

	for _, row in ipairs(rows) do
		lines[#lines + 1] = row_of_list(row)
	end
	return pandoc.RawBlock('rst', table.concat(lines, '\n') .. '\n\n')
end

function Table(tbl)
	local simple = pandoc.utils.to_simple_table(tbl)
	local rows = { table.unpack(simple.rows) }
	local headers = pandoc.utils.stringify(pandoc.List(simple.header)) == '' and 0 or 1

	if headers == 1 then
		table.insert(rows, 1, simple.header)
	end
	if width(rows) > columns then
		return list(rows, headers)
	end
	for i in ipairs(simple.widths) do
		simple.widths[i] = 0
	end
	return pandoc.utils.from_simple_table(simple)
end
