"""Files are written whole, and links to them stay links."""

import pytest

from qm1b.errors import UserError
from qm1b.storage.files import atomic_write, write_text


def test_a_link_stays_and_its_target_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a.txt", tmp_path / "link"
    second = tmp_path / "second"
    target.write_text("old")
    link.symlink_to("there/a.txt")
    second.symlink_to(link)
    for path, text in ((link, "new"), (second, "newer")):
        write_text(path, text)
        assert target.read_text() == text
        assert link.is_symlink()
        assert second.is_symlink()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["a.txt"]


def test_a_link_to_a_file_that_is_not_there_yet(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "new.txt")
    write_text(link, "new")
    assert (tmp_path / "new.txt").read_text() == "new"
    assert link.is_symlink()


@pytest.mark.parametrize("target", ["none/a.txt", "link", "."])
def test_a_link_that_leads_nowhere(tmp_path, target):
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(UserError, match=r"cannot write .*link: "):
        write_text(link, "new")
    assert link.is_symlink()


def test_two_writers_of_one_file_each_write_it_whole(tmp_path):
    path = tmp_path / "a.txt"

    def slow(stream):
        stream.write(b"sl")
        write_text(path, "quick")
        assert path.read_text() == "quick"
        stream.write(b"ow")

    atomic_write(path, slow)
    assert path.read_text() == "slow"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
