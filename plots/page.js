// Tables sort by a click on a heading; a table of all metrics shows the rows that have every word of its search.
document.querySelectorAll('table').forEach(function (table) {
  table.querySelectorAll('th').forEach(function (head, column) {
    var up = true;
    head.className = 'by';
    head.title = 'sort';
    head.addEventListener('click', function () {
      var body = table.tBodies[0];
      var value = function (row) {
        var text = row.cells[column].textContent, number = parseFloat(text);
        return isNaN(number) ? text : number;
      };
      Array.from(body.rows).sort(function (a, b) {
        var x = value(a), y = value(b);
        if (typeof x !== typeof y) { return typeof x === 'number' ? -1 : 1; }
        return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
      }).forEach(function (row) { body.appendChild(row); });
      up = !up;
    });
  });
});
document.querySelectorAll('input[type=search]').forEach(function (input) {
  var rows = Array.from(input.parentNode.querySelector('tbody').rows);
  input.addEventListener('input', function () {
    var words = input.value.toLowerCase().split(/\s+/);
    rows.forEach(function (row) {
      var text = row.cells[0].textContent.toLowerCase();
      row.hidden = !words.every(function (word) { return text.includes(word); });
    });
  });
});
