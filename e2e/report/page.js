(function () {
  var form = document.querySelector('.filter'), q = document.getElementById('q'), all = [].slice.call(document.querySelectorAll('.sc'));
  function filter() {
    var words = q.value.toLowerCase().split(/\s+/), on = {}, n = 0;
    form.querySelectorAll('[type=checkbox]').forEach(function (b) { on[b.value] = b.checked; });
    all.forEach(function (d) {
      d.hidden = !on[d.dataset.s] || !words.every(function (w) { return d.dataset.k.indexOf(w) >= 0; });
      n += !d.hidden;
    });
    document.querySelectorAll('.suite').forEach(function (s) { s.hidden = !s.querySelector('.sc:not([hidden])'); });
    document.getElementById('shown').textContent = n + ' of ' + all.length;
  }
  function goto() {
    var d = location.hash && document.getElementById(location.hash.slice(1));
    if (d && d.className === 'sc') { d.hidden = d.parentNode.hidden = false; d.open = true; d.scrollIntoView(); }
  }
  function open(yes) { all.forEach(function (d) { if (!yes || !d.hidden) { d.open = yes; } }); }
  form.hidden = false;
  form.addEventListener('input', filter);
  form.addEventListener('submit', function (e) { e.preventDefault(); });
  document.getElementById('open').onclick = function () { open(true); };
  document.getElementById('close').onclick = function () { open(false); };
  window.addEventListener('hashchange', goto);
  filter();
  goto();
})();
